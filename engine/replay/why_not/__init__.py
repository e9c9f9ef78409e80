"""Why a rule did not fire: a ladder of questions over what a run kept."""
