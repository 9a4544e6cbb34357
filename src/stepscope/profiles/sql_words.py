"""The words that queries may use, and those they may not."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = (
    _words(  # of numbers
        """abs acos acosd asin asind atan atan2 atan2d atand bit_and bit_count bit_not bit_or bit_xor cbrt ceil ceiling
        cos cosd cot cotd degrees div exp floor greatest least ln log log10 log1p log2 mod pi pow power radians round
        sign sin sind sqrt tan tand trunc truncate xor"""
    )
    | _words(  # of texts
        """bit_length char_length character_length concat concat_ws ends_with initcap left length lower ltrim normalize
        octet_length overlay position regexp_like regexp_replace replace reverse right rtrim split_part starts_with
        string_to_array strpos substr substring trim upper"""
    )
    | _words(  # of a group of rows
        """approx_quantile array_agg avg corr count covar covar_pop covar_samp first group_concat grouping last max
        median min quantile_cont quantile_disc stddev stddev_samp stdev stdev_samp string_agg sum total var var_samp
        variance"""
    )
    | _words(  # over a window
        "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
    )
    | _words(  # of lists
        """array_contains array_get array_length array_lower array_mean array_reverse array_sum array_to_string
        array_unique array_upper unnest"""
    )
    | _words(  # of values, dates and columns
        """cast coalesce columns date date_part date_trunc datetime exclude extract if ifnull nullif rename strftime
        strptime time timestamp try_cast"""
    )
)
# FROM is part of the call, not a clause, in these.
CALLS_WITH_FROM = _words("extract overlay substring trim")
# Words that may stand before a bracket without calling anything.
OPENERS = _words(
    """all and any array as between by case cube distinct else except exists filter from group having ilike in intersect
    is join like limit match_condition not offset on or over qualify regexp rlike rollup select sets some then union
    using when where"""
)
SIZED_TYPES = _words("bit char character dec decimal float numeric time timestamp varchar")
SET_OPERATORS = _words("union intersect except")
# Where the tables of a FROM end.
AFTER_FROM = SET_OPERATORS | _words("where group having order limit offset window qualify fetch")
# Other statements, and clauses that could name something other than a table.
REFUSED_WORDS = _words(
    """alter analyze attach begin call commit copy create deallocate declare delete describe detach drop execute explain
    export grant import insert install into kill lateral load lock merge optimize pivot pragma prepare recursive refresh
    revoke rollback savepoint set show table tablesample unpivot update use vacuum values"""
)
