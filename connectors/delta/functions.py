"""The functions that SQL of a rulebook may call, by name (G27); and what makes the value of a text
change with time: functions such as now(), and literals such as TIMESTAMP'today' (G25).

The functions are Spark's own. Their values depend on the arguments and the rows alone. Those in
`CHANGING` also depend on time or chance: actions may call them, predicates may not (G25). Functions
that call code, read files, take a schema out of a text, or tell of the session, the user or the
machine are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidegate.connectors.delta.plans import Part, Parts, words

_STEADY = words(
    # aggregates
    "any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor "
    "bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set "
    "corr count count_if count_min_sketch covar_pop covar_samp every first first_value grouping "
    "grouping_id histogram_numeric kurtosis last last_value listagg max max_by mean median min "
    "min_by mode percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy "
    "regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std "
    "stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance "
    # sketches
    "approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate "
    "hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg kll_merge_agg_bigint "
    "kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double "
    "kll_sketch_agg_float kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float "
    "kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double kll_sketch_get_quantile_float "
    "kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float "
    "kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float "
    "kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float "
    "theta_difference theta_intersection theta_intersection_agg theta_sketch_agg "
    "theta_sketch_estimate theta_union theta_union_agg "
    # windows
    "cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window "
    "window window_time "
    # numbers
    "abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos cosh cot csc "
    "degrees div e exp expm1 factorial floor greatest hex hypot least ln log log10 log1p log2 mod "
    "negative pi pmod positive pow power radians rint round sec sign signum sin sinh sqrt tan tanh "
    "try_add try_divide try_mod try_multiply try_subtract unhex width_bucket "
    "bit_count bit_get getbit shiftleft shiftright shiftrightunsigned bitmap_bit_position "
    "bitmap_bucket_number bitmap_count vector_avg vector_cosine_similarity vector_inner_product "
    "vector_l2_distance vector_norm vector_normalize vector_sum "
    # logic
    "and between coalesce equal_null if ifnull in isnan isnotnull isnull nanvl not nullif "
    "nullifzero nvl nvl2 or when zeroifnull assert_true raise_error typeof "
    # texts
    "ascii base64 bit_length btrim char char_length character_length chr collate collation concat "
    "concat_ws contains decode elt encode endswith find_in_set format_number format_string ilike "
    "initcap instr is_valid_utf8 lcase left len length levenshtein like locate lower lpad ltrim "
    "luhn_check make_valid_utf8 mask octet_length overlay position printf quote regexp "
    "regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace "
    "regexp_substr repeat replace reverse right rlike rpad rtrim sentences soundex space split "
    "split_part startswith str_to_map substr substring substring_index to_binary to_char to_number "
    "to_varchar translate trim try_to_binary try_to_number try_validate_utf8 ucase unbase64 upper "
    "validate_utf8 parse_url try_parse_url try_url_decode url_decode url_encode "
    # dates and times
    "add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part "
    "date_sub date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear "
    "extract from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval "
    "make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval "
    "minute month monthname months_between next_day quarter second time_bucket time_diff "
    "time_from_micros time_from_millis time_from_seconds time_to_micros time_to_millis "
    "time_to_seconds time_trunc timestamp_micros timestamp_millis timestamp_seconds to_date "
    "to_time to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp "
    "trunc try_make_interval try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz "
    "try_to_date try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_seconds "
    "unix_timestamp weekday weekofyear year "
    # casts
    "bigint binary boolean cast date decimal double float int smallint string time timestamp "
    "tinyint "
    # arrays, maps, structs
    "aggregate array array_append array_compact array_contains array_distinct array_except "
    "array_insert array_intersect array_join array_max array_min array_position array_prepend "
    "array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip "
    "cardinality element_at exists filter flatten forall get map map_concat map_contains_key "
    "map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with "
    "named_struct reduce sequence size slice sort_array struct transform transform_keys "
    "transform_values try_element_at zip_with "
    # JSON, CSV, variants: their options only say how a text is read
    "from_csv from_json get_json_object is_valid_variant is_variant_null json_array_length "
    "json_object_keys parse_json to_csv to_json to_variant_object try_parse_json try_variant_get "
    "variant_get "
    # digests
    "crc32 hash md5 sha sha1 sha2 xxhash64 aes_decrypt try_aes_decrypt"
)
_ROWS = words(
    "explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack"
)

CHANGING = words(
    "aes_encrypt curdate current_date current_time current_timestamp localtimestamp "
    "monotonically_increasing_id now rand randn random randstr shuffle uniform uuid"
)
FUNCTIONS = _STEADY | _ROWS | CHANGING
TABLE_FUNCTIONS = _ROWS | words("range variant_explode variant_explode_outer")


_CLOCKS = words(
    "CurrentBatchTimestamp CurrentDate CurrentTime CurrentTimestamp CurrentTimestampLike "
    "LocalTimestamp Now"
)
_ORDERED = words("AggregateExpression AnyValue CollectList CollectSet First Last ListAgg")
_TIMES = words("date timestamp timestamp_ntz")  # types that know such texts
_ROWS_OWN = words("AttributeReference GetStructField")  # never constant: Spark need not be asked
_PLAIN = re.compile(r"[a-z_]*\s*r?['\"]\s*([-+]?\d|epoch\b)", re.IGNORECASE)
_MOMENT = re.compile(r"\W*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def changing(parts: Iterable[Part]) -> str | None:
    """The first function whose value changes with time or chance, as text; None if there is none.

    Functions that depend on the order of rows only are left out: the rows of `event` have an order.
    The first of `parts` is the root of the others.
    """
    found = list(parts)
    for part in found:
        if part.kind in _CLOCKS:
            return f"{part.java.prettyName()}(..)"
    if found and found[0].java.deterministic():
        return None
    loose = {p.number for p in found if not p.plan and not p.java.deterministic()}
    owners = {p.owner for p in found if p.number in loose}
    for part in found:
        if part.number in loose - owners and part.kind not in _ORDERED:
            return f"{part.java.prettyName()}(..)"
    return None


def moment_written(parts: Iterable[Part], text: str) -> tuple[str, int] | None:
    """The first literal in a parsed text that may mean a moment relative to now, and its offset.

    Example: TIMESTAMP'today'. The parser replaces the word by its value: only the text shows it.
    """
    for part in parts:
        if part.kind == "Literal" and part.said("dataType") in _TIMES:
            at = part.start
            if at is None or part.stop is None:
                return part.said("dataType"), 0
            if not _PLAIN.match(text, at):
                return text[at : part.stop + 1], at
    return None


def moment_cast(parts: Parts) -> str | None:
    """The first cast that may make a moment relative to now, such as CAST('today' AS DATE).

    `parts`: of an analysed plan after `Plans.replaced`.
    """
    for part in parts:
        if part.kind != "Cast" or part.said("dataType") not in _TIMES:
            continue
        (child,) = parts.held(part, "child")
        if child.kind == "Literal":
            if child.said("dataType").startswith("string") and _MOMENT.match(child.said("value")):
                return f"cast('{child.said('value')}' AS {part.said('dataType')})"
        elif child.kind not in _ROWS_OWN and child.java.foldable():
            kind = str(child.java.dataType().typeName())
            if kind.startswith("string"):
                return f"a computed text that is cast to {part.said('dataType')}"
    return None
