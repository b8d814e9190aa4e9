"""Formulas made of several questions, answered with bounds that are bounds: from operators to one answer."""
