"""Tests of many like cases, of which an ordinary run tries one in so many, and all with `TIGHTROPE_WHOLE=1`.

The steps share no factor with the lengths of the lists that a test is the product of, where that can be:
every member of each list is then still met, with some members of the others. A test that is called by its
name is run.
"""

from __future__ import annotations

from collections import Counter

import pytest

from effort import WHOLE

THINNED = {
    "test_amendments.py::test_what_is_written_reads_back_the_same": 2,
    "test_against_stormpy.py::test_same_model_as_storm": 3,
    "test_against_stormpy.py::test_sizes_and_parameters": 2,
    "test_breakdown.py::test_breakdown_against_enumeration": 3,
    "test_certificate.py::test_solutions_are_proved_by_both_checkers": 3,
    "test_certificate_composed.py::test_honest_ones_hold_at_points_and_for_both_checkers": 2,
    "test_certificate_coupled.py::test_coupled_intervals_of_learned_results_are_proved": 2,
    "test_certificate_coupled.py::test_every_objective_has_proofs": 2,
    "test_certificate_coupled.py::test_no_mutation_of_a_part_gets_through": 2,
    "test_certificate_ellipsoid.py::test_mutations_fail": 3,
    "test_certificate_ellipsoid.py::test_results_are_proved_as_they_are": 2,
    "test_certificate_episodes.py::test_honest": 2,
    "test_certificate_episodes.py::test_returns_are_proved_beside_the_model": 3,
    "test_certificate_learning.py::test_results_of_every_family_are_proved": 2,
    "test_certificate_learning.py::test_the_checker_and_the_ledger_agree_on_what_holds": 3,
    "test_certificate_learning.py::test_the_same_in_rationals": 2,
    "test_certificate_slab.py::test_what_was_learned_is_proved_in_both_arithmetics": 2,
    "test_cli_check_domain.py::test_certificates_over_domains_hold_for_every_objective": 2,
    "test_cli_watch.py::test_a_checkpoint_that_is_not_what_it_should_be_is_refused_in_words": 2,
    "test_compare.py::test_certificates_prove_the_difference": 2,
    "test_compare.py::test_the_interval_holds_all_differences_of_the_region": 3,
    "test_continuous.py::test_known_models_agree_with_storm": 3,
    "test_continuous.py::test_queue_agrees_with_storm": 3,
    "test_coupled_proofs.py::test_frames_enclose_their_cells_tightly": 2,
    "test_coupled_proofs.py::test_taylor_models_enclose_the_exact_values_of_all_rows": 2,
    "test_coupled_value.py::test_no_instantiation_leaves_the_interval_of_any_objective": 2,
    "test_cuda_solve.py::test_bounds_enclose_the_exact_value_and_meet": 3,
    "test_leaps.py::test_leaps_and_steps_agree_and_the_policy_attains_its_bound": 3,
    "test_learning_combinations.py::test_every_combination_covers_the_truth_and_nests": 2,
    "test_learning_files.py::test_storm_solves_the_learned_model_to_the_same_values": 2,
    "test_long_run.py::test_averages_of_interval_models_are_those_of_vertices": 3,
    "test_multi.py::test_best_values_are_those_of_linear_programs": 2,
    "test_near_one.py::test_random_models_near_one": 3,
    "test_online_learner.py::test_an_incremental_update_is_what_learn_says_of_the_same_counts": 3,
    "test_pomdp.py::test_bounds_hold_for_every_controller": 3,
    "test_prism_narrow.py::test_random_programs": 2,
    "test_prism_narrow.py::test_states_one_by_one_make_the_model_of_frames": 2,
    "test_proof_bases.py::test_bases_prove_what_linear_programs_say": 2,
    "test_proved.py::test_forgeries_are_refused": 2,
    "test_proved.py::test_honest_certificates_are_accepted_where_their_kind_is_covered": 2,
    "test_proved.py::test_malformed_files_are_refused_with_words": 3,
    "test_quotient_certificates.py::test_learned_results_verify": 3,
    "test_random_programs.py::test_the_same_model_as_storm": 3,
    "test_rational_functions.py::test_all_sets_and_regions_learn_quotients": 2,
    "test_region_battery.py::test_battery": 3,
    "test_region_battery.py::test_more_data_make_the_region_smaller_on_average": 3,
    "adversary/test_binding.py::test_every_field_of_the_problem_is_compared": 2,
}
"""Test: of so many cases one."""

BENCHMARKS = (
    "test_certificate_battery.py::test_four_combinations_on_a_small_instance",
    "test_coupled_benchmark.py::test_small_instances_are_measured",
    "test_improve_benchmark.py::test_differences_take_fewer_episodes_than_two_intervals",
    "test_learning_benchmarks.py::test_certified_intervals_cover",
    "test_learning_benchmarks.py::test_learning_is_timed_by_phase",
    "test_many_parameters.py::test_the_benchmark_of_many_parameters",
    "test_outcomes.py::test_the_benchmark_of_widths_and_coverage",
    "test_plain_models.py::test_smoke_run_agrees_with_storm",
    "test_planning_benchmark.py::test_forecasts",
    "test_planning_benchmark.py::test_guarantees_of_a_few_designed_runs_hold",
    "test_planning_benchmark.py::test_ways_to_explore_are_compared_once",
    "test_questions.py::test_the_battery_finds_no_value_outside",
    "test_rate_fit.py::test_power_and_false_alarms_in_small",
    "test_region_benchmarks.py::test_speed_is_measured_part_by_part",
    "test_region_benchmarks.py::test_widths_are_relative_to_the_papers_polytope",
    "test_rivals.py::test_all_rivals_answer",
)
"""Scripts of `benchmarks/` in small; `test_benchmark_scripts.py` starts them all."""


def thin(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other cases."""
    if WHOLE or any("::" in str(argument) for argument in config.args):
        return
    met: Counter[str] = Counter()
    kept, left_out = [], []
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("tests/")
        is_kept = name not in BENCHMARKS and met[name] % THINNED.get(name, 1) == 0
        (kept if is_kept else left_out).append(item)
        met[name] += 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
