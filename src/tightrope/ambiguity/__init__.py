"""What nature may pick from at each choice: intervals per expression, or a shared region."""
