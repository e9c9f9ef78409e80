"""Every setting in a sentence: what it counts, and what happens at it. The schema shows them in
editors, docs/language.md and the site in a table."""

from __future__ import annotations

LIMITS = {
    "commit_slack_ms": "So long after its time a commit is waited for, as commits of other tables "
    "may come later. By default 0 for one table without timers, else 200.",
    "skew_max_seconds": "A commit whose time is further ahead of the clock is set back to it; an "
    "engine whose clock differs by more from the store's does not start.",
    "bucket_rows_max": "Rows that are taken at a time; a bucket with more ends earlier, and the "
    "next one goes on.",
    "detect": "Where rules with a key are detected: by the driver; by Spark's executors, part by "
    "part; or `auto`, by executors where the driver would have too much.",
    "driver_rows_max": "With more rows that are visible and not taken, `detect: auto` gives "
    "buckets to executors. A bucket of which they detect more ends earlier. More rows of a "
    "DataFrame for rules that no key cuts are refused.",
    "driver_carried_max": "With more instances that rules carry, `detect: auto` gives buckets to "
    "executors.",
    "spark_rows_max": "Rows of a bucket that executors read themselves; a bucket with more ends "
    "earlier.",
    "timers_per_bucket_max": "Ticks of clocks, and as many other timers, of one bucket; with more "
    "it ends earlier.",
    "period_min_ms": "A `P` with a shorter period is refused, and so is a window that ends more "
    "often.",
    "misfire_grace_seconds": "A clock that is due for longer was missed, as after a downtime; its "
    "`misfire` says what then happens.",
    "signals_max": "Signals of one bucket; the others wait for the next one.",
    "outbox_entries_max": "Actions that are not finished; with more of them no further changes are "
    "taken until some are.",
    "actions_in_parallel_max": "Actions that are carried out at a time; 0: one for each core.",
    "entries_per_commit_max": "INSERTs of a bucket into one table that share a commit; 1: each has "
    "a commit of its own.",
    "dead_in_a_row_max": "After so many dead actions of a rule one after the other, the rest of "
    "its queue is held.",
    "firings_per_rule_per_minute_max": "A rule that fires more often is parked; 0: it may fire as "
    "often as it will.",
    "outbox_age_max_days": "So old may an action become that is tried again: a target whose "
    "delta.setTransactionRetentionDuration is shorter is refused.",
    "firings_retention_days": "So long after its actions are finished a firing can be listed and "
    "explained.",
    "retention_margin_hours": "So long before a part of a table's past is gone that is still "
    "needed, `status` and `/metrics` tell so.",
    "history_retention_days": "So long buckets, signals that were taken, their ids and rejected "
    "rows are known.",
    "lease_seconds": "An engine that has not been heard of for so long is taken for gone, and "
    "another one may take over.",
    "max_cascade_depth": "Actions that cause events that cause actions: a firing deeper than this "
    "is dead.",
    "carried_per_key_max": "What a rule keeps of one key, in occurrences; with more the rule is "
    "parked.",
    "window_rows_max": "Rows that the windows of a rule hold; with more the bucket ends earlier, "
    "and if windows that end together have more, the rule is parked.",
    "dedupe_keys_max": "Keys that a rule's `dedupe` remembers; with more the rule is parked.",
    "state_partitions": "What rules keep is stored in so many parts at most; a bucket rewrites "
    "only those that it changes.",
    "state_path": "A folder, by absolute path or URI, for large parts of what rules keep; `store`: "
    "all of it is in the store. By default a folder beside the file of a store on SQLite, else "
    "`store`.",
    "state_unused_hours": "So long a file of the state is kept after nothing in the store points "
    "to it any more.",
    "state_unused_bytes_max": "With more bytes in such files the oldest of them go earlier, though "
    "none within a minute.",
    "search_steps_max": "Combinations of occurrences that are tried at one instant for one key; "
    "with more the rule is parked.",
    "script_steps_max": "Statements that a script may run at one event; with more the script is "
    "parked.",
    "script_state_bytes_max": "Memory of a script's variables for one key; with more the script is "
    "parked.",
    "script_paths_max": "Ways that a script follows at once for one key; with more the script is "
    "parked.",
    "script_markers_max": "Markers and blocks of a script, repetitions counted; with more it is "
    "refused.",
    "script_states_max": "States of a script that are worked out beforehand; one with more works "
    "them out as they come.",
    "script_exploring_steps_max": "Steps by which `validate` looks for mistakes in all scripts; "
    "past them it says which scripts it has not seen whole.",
    "script_errors_kept_max": "Faults of scripts that a bucket keeps; the others are counted.",
    "statement_seconds_max": "A query, an action or a read that takes longer is ended, and has a "
    "strike.",
    "strikes_max": "After so many strikes, such as deaths of Java while it ran, a text is not run "
    "any more.",
    "outage_max_seconds": "A store or storage that is away, or a full disk, is waited for so long; "
    "then the rulebook stops.",
    "spark_restarts_max": "So often in an hour a Spark that the engine has started is started "
    "again; then the run ends. 0: never.",
    "yaml_bytes_max": "A longer rulebook, its included files counted, is refused. Only `--set` can "
    "change it; it then holds for `rules put`, `disable --key` and `reload`, too.",
    "inbox_bytes_max": "A request with a larger body is refused.",
    "inbox_batch_max": "A request with more signals is refused.",
    "inbox_requests_per_second_max": "More requests of one key, or of one address where there are "
    "no keys, are refused with 429.",
    "inbox_window_seconds": "A signature that is older, or so far ahead, is refused.",
    "inbox_connections_max": "With more connections the one that is silent for the longest time is "
    "closed.",
    "inbox_streams_max": "Programs that may wait for firings at a time; more are refused.",
    "inbox_client_seconds_max": "A client that neither sends nor reads for so long is "
    "disconnected.",
    "console_sessions_max": "Logins of the console at a time; with more, the oldest one of the "
    "key that has most ends.",
    "console_session_minutes": "So long after a login the console asks for the key again.",
    "webhooks_in_flight_max": "Webhooks of all rules that are sent at a time; the others wait.",
    "webhook_seconds_max": "A webhook without an answer by then has failed, and is tried again.",
}
