"""What an ordinary run leaves out: of many like cases most, and what takes long; nothing of it with
`TIGHTROPE_WHOLE=1`.

The steps share no factor with the lengths of the lists that a test is the product of, where that can be:
every member of each list is then still met, with some members of the others. A test that is called by its
name is run.
"""

from __future__ import annotations

from collections import Counter

import pytest

from effort import WHOLE

THINNED = {
    "test_against_stormpy.py::test_same_model_as_storm": 3,
    "test_against_stormpy.py::test_sizes_and_parameters": 2,
    "test_amendments.py::test_what_is_written_reads_back_the_same": 2,
    "test_breakdown.py::test_breakdown_against_enumeration": 3,
    "test_breakdown.py::test_certificates_of_a_misfit": 2,
    "test_breakdown.py::test_learning_with_a_misfit_meets_the_breakdown": 2,
    "test_campaign_isolation.py::test_every_way_to_fail_is_a_status": 2,
    "test_capabilities.py::test_every_cell_is_as_the_table_says": 3,
    "test_capabilities.py::test_every_kind_is_learned_about_and_encloses_the_truth": 2,
    "test_certificate.py::test_solutions_are_proved_by_both_checkers": 3,
    "test_certificate_budget.py::test_a_bomb_is_refused_by_name_before_it_goes_off": 2,
    "test_certificate_composed.py::test_honest_ones_hold_at_points_and_for_both_checkers": 2,
    "test_certificate_coupled.py::test_coupled_intervals_of_learned_results_are_proved": 2,
    "test_certificate_coupled.py::test_every_objective_has_proofs": 2,
    "test_certificate_coupled.py::test_no_mutation_of_a_part_gets_through": 2,
    "test_certificate_ellipsoid.py::test_events_count_only_where_they_are_derived": 3,
    "test_certificate_ellipsoid.py::test_mutations_fail": 3,
    "test_certificate_ellipsoid.py::test_results_are_proved_as_they_are": 2,
    "test_certificate_episodes.py::test_honest": 2,
    "test_certificate_episodes.py::test_returns_are_proved_beside_the_model": 3,
    "test_certificate_learning.py::test_results_of_every_family_are_proved": 3,
    "test_certificate_learning.py::test_the_checker_and_the_ledger_agree_on_what_holds": 3,
    "test_certificate_learning.py::test_the_same_in_rationals": 2,
    "test_certificate_rates.py::test_certificates_hold_the_truth_and_all_checkers_accept_them": 2,
    "test_certificate_slab.py::test_the_second_checker_places_the_same_bets_and_reads_the_file": 2,
    "test_certificate_slab.py::test_what_was_learned_is_proved_in_both_arithmetics": 2,
    "test_cli_check_domain.py::test_certificates_over_domains_hold_for_every_objective": 2,
    "test_cli_data.py::test_the_figure": 3,
    "test_cli_messages.py::test_the_hint_of_a_nominal_confidence_helps": 2,
    "test_cli_online.py::test_a_failed_start_leaves_nothing_behind": 2,
    "test_cli_watch.py::test_a_checkpoint_that_is_not_what_it_should_be_is_refused_in_words": 2,
    "test_compare.py::test_certificates_prove_the_difference": 2,
    "test_compare.py::test_improve_is_never_worse_than_the_baseline": 2,
    "test_compare.py::test_the_interval_holds_all_differences_of_the_region": 3,
    "test_continuous.py::test_known_models_agree_with_storm": 3,
    "test_continuous.py::test_queue_agrees_with_storm": 3,
    "test_coupled_proofs.py::test_frames_enclose_their_cells_tightly": 2,
    "test_coupled_proofs.py::test_taylor_models_enclose_the_exact_values_of_all_rows": 2,
    "test_coupled_value.py::test_no_instantiation_leaves_the_interval_of_any_objective": 2,
    "test_cuda_solve.py::test_bounds_enclose_the_exact_value_and_meet": 3,
    "test_doctests.py::test_examples": 3,
    "test_formats_drn.py::test_a_round_trip_returns_the_same_model": 3,
    "test_formats_drn.py::test_reads_what_storm_writes": 3,
    "test_formats_drn.py::test_storm_reads_what_we_write": 3,
    "test_formats_explicit.py::test_a_round_trip_returns_the_same_model": 3,
    "test_formats_jani.py::test_storm_reads_what_is_written": 3,
    "test_formats_jani.py::test_what_is_written_is_read_back": 3,
    "test_formats_jani.py::test_storms_examples": 2,
    "test_leaps.py::test_leaps_and_steps_agree_and_the_policy_attains_its_bound": 3,
    "test_learning_combinations.py::test_every_combination_covers_the_truth_and_nests": 3,
    "test_learning_files.py::test_storm_solves_the_learned_model_to_the_same_values": 2,
    "test_learning_results.py::test_a_randomised_policy_lies_between": 2,
    "test_long_run.py::test_averages_of_interval_models_are_those_of_vertices": 3,
    "test_model_budget.py::test_deep_formulas": 2,
    "test_multi.py::test_best_values_are_those_of_linear_programs": 2,
    "test_near_one.py::test_random_models_near_one": 3,
    "test_online_drift.py::test_a_run_that_was_interrupted_has_the_same_evidence": 3,
    "test_online_exploration.py::test_a_run_stops_at_the_first_look_with_a_small_gap": 2,
    "test_online_exploration.py::test_a_run_that_waits_for_a_gap_goes_on_where_it_was_stopped": 2,
    "test_online_learner.py::test_all_guarantees_of_a_run_hold_together": 2,
    "test_online_learner.py::test_an_incremental_update_is_what_learn_says_of_the_same_counts": 3,
    "test_output_file.py::test_a_foreign_file_is_replaced_where_the_user_says_so_and_then_its_own": 3,
    "test_page_code.py::test_commands_of_a_page_run": 3,
    "test_page_code.py::test_every_snippet_of_a_page_runs_alone": 3,
    "test_plan.py::test_the_formula_is_that_of_the_sets": 2,
    "test_pomdp.py::test_bounds_hold_for_every_controller": 3,
    "test_prism_narrow.py::test_random_programs": 2,
    "test_prism_narrow.py::test_states_one_by_one_make_the_model_of_frames": 2,
    "test_prism_part.py::test_every_part_encloses_the_value_of_the_whole": 2,
    "test_proof_bases.py::test_bases_prove_what_linear_programs_say": 2,
    "test_proved.py::test_forgeries_are_refused": 2,
    "test_proved.py::test_honest_certificates_are_accepted_where_their_kind_is_covered": 2,
    "test_proved.py::test_malformed_files_are_refused_with_words": 3,
    "test_public_objects.py::test_pickles_copies_and_texts": 3,
    "test_qcomp_families.py::test_markov_automata_beside_storm": 2,
    "test_quotient_certificates.py::test_learned_results_verify": 3,
    "test_random_programs.py::test_the_same_model_as_storm": 3,
    "test_rational_functions.py::test_all_sets_and_regions_learn_quotients": 2,
    "test_reading_speed.py::test_times_that_interleave_over_files_are_counted_exactly": 2,
    "test_region_battery.py::test_battery": 3,
    "test_region_battery.py::test_more_data_make_the_region_smaller_on_average": 3,
    "test_shown_bounds.py::test_learn_rounds_guarantee_and_intervals_to_the_safe_side": 2,
    "test_site.py::test_the_code_of_a_page_does_what_it_shows": 4,
    "test_suite_sizes.py::test_sizes_are_exact_and_the_true_point_gives_a_model": 3,
    "test_suite_storm.py::test_storm_counts_the_same_transitions_and_expressions": 2,
    "test_suite_values.py::test_the_optimum_at_the_true_point_is_the_recorded_one": 2,
    "test_uncertainty_sets.py::test_the_hierarchy_of_theorem_2": 2,
    "test_verdicts.py::test_every_surface_says_the_same": 3,
    "adversary/test_binding.py::test_every_field_of_the_problem_is_compared": 2,
    "adversary/test_honest.py::test_honest_certificates_are_accepted_and_true": 2,
}
"""Test: of so many cases one."""

BENCHMARKS = (
    "test_build_speed.py::test_coverage_of_quotients",
    "test_agreement.py::test_the_battery_finds_no_contradiction",
    "test_certificate_battery.py::test_four_combinations_on_a_small_instance",
    "test_coupled_benchmark.py::test_small_instances_are_measured",
    "test_doctor.py::test_intervals_of_chosen_models_hold",
    "test_doctor_benchmarks.py::test_planted_departures_are_found_and_named",
    "test_factored_intervals.py::test_the_benchmark_holds_on_small_instances",
    "test_improve_benchmark.py::test_differences_take_fewer_episodes_than_two_intervals",
    "test_learning_benchmarks.py::test_certified_intervals_cover",
    "test_learning_benchmarks.py::test_learning_is_timed_by_phase",
    "test_log_coverage.py::test_no_way_to_spoil_a_log_is_certified_and_wrong",
    "test_many_parameters.py::test_the_benchmark_of_many_parameters",
    "test_online_benchmark.py::test_small_runs_are_measured_and_agree_with_fresh_learning",
    "test_outcomes.py::test_the_benchmark_of_widths_and_coverage",
    "test_plain_models.py::test_smoke_run_agrees_with_storm",
    "test_planning_benchmark.py::test_forecasts",
    "test_planning_benchmark.py::test_guarantees_of_a_few_designed_runs_hold",
    "test_planning_benchmark.py::test_ways_to_explore_are_compared_once",
    "test_proved.py::test_the_battery_of_certificates",
    "test_questions.py::test_the_battery_finds_no_value_outside",
    "test_rate_fit.py::test_power_and_false_alarms_in_small",
    "test_rate_learning.py::test_coverage_benchmark_in_small",
    "test_reading_speed.py::test_the_benchmark_counts_every_row_on_any_number_of_threads",
    "test_region_benchmarks.py::test_speed_is_measured_part_by_part",
    "test_region_benchmarks.py::test_widths_are_relative_to_the_papers_polytope",
    "test_rivals.py::test_all_rivals_answer",
    "test_saturated_benchmark.py::test_free_rows_are_answered_by_default",
    "test_slab_benchmark.py::test_intervals_of_a_few_replications_hold",
    "test_slab_benchmark.py::test_the_default_is_as_narrow_as_what_can_be_chosen",
    "test_slab_benchmark.py::test_widths_are_measured_once",
    "test_solver_rectangular_benchmark.py::test_one_small_instance_is_measured",
    "test_suite_benchmark.py::test_one_instance_is_measured_in_a_process_of_its_own",
    "test_simulation_benchmark.py::test_all_simulators_walk_and_all_files_are_read",
    "test_watch_benchmark.py::test_a_little_of_the_experiment",
    "test_worlds.py::test_six_worlds_twice_and_none_is_proved_and_wrong",
)
"""Scripts of `benchmarks/` in small; `test_benchmark_scripts.py` starts them all."""

LONG = (
    "test_campaign_dask.py::test_no_cell_is_lost_or_doubled_when_a_worker_is_killed_and_a_scheduler_that_goes_away_is_said",
    "test_cli_warmup.py::test_somebody_at_a_terminal_or_prompt_is_told_once_that_kernels_are_compiled",
    "test_kernel_cache.py::test_kernels_are_kept_in_a_directory_of_the_users_own",
    "test_kernel_cache.py::test_kernels_in_the_installation_are_loaded_and_nothing_is_compiled",
    "test_kernel_cache.py::test_the_users_word_goes_first",
    "test_kernel_cache.py::test_without_any_place_kernels_are_compiled_anew_with_one_line",
    "test_online_run.py::test_killed_twice_a_run_gives_the_records_of_one_that_was_not",
    "test_report_figures.py::test_files_for_papers_are_the_same_each_time",
    "test_site.py::test_every_command_option_and_public_name_is_in_the_reference",
    "test_site.py::test_pages_fit_every_screen_in_light_and_dark",
    "test_site.py::test_pages_load_nothing_from_the_net",
)  # fmt: skip
"""Processes that compile, clusters, and the whole site (`make docs` builds it, too): 5 to 40 seconds."""


def thin(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other cases."""
    if WHOLE or any("::" in str(argument) for argument in config.args):
        return
    met: Counter[str] = Counter()
    kept, left_out = [], []
    for item in items:
        name = item.nodeid.partition("[")[0].removeprefix("tests/")
        is_kept = name not in (*BENCHMARKS, *LONG) and met[name] % THINNED.get(name, 1) == 0
        (kept if is_kept else left_out).append(item)
        met[name] += 1
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
