"""The classes of nodes that SQL of a rulebook may consist of, as parsed and as analysed (G27).

Everything else is refused by name. What a function call becomes in an analysed plan follows from
the names in `connectors.delta.functions`; the classes are Spark's and Delta's own.
"""

from __future__ import annotations

from tidegate.connectors.delta.plans import Part, words

_CATALYST = "org.apache.spark.sql.catalyst."
_SQL = "org.apache.spark.sql."


def _of(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{package}.{name}" for name in names.split())


_RELATIONAL = _of(
    f"{_CATALYST}plans.logical",
    "Aggregate Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit "
    "LocalRelation Offset OneRowRelation Project Repartition RepartitionByExpression Sample Sort "
    "SubqueryAlias Union",
) | _of(f"{_CATALYST}expressions", "PipeOperator")
_OPERATORS = _of(
    f"{_CATALYST}expressions",
    "Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus UnaryPositive BitwiseAnd "
    "BitwiseNot BitwiseOr BitwiseXor ShiftLeft ShiftRight ShiftRightUnsigned "
    "And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual In "
    "IsNull IsNotNull Between ILike Like LikeAll LikeAny NotLikeAll NotLikeAny RLike CaseWhen If "
    "Coalesce Cast Collate Concat Lower Overlay StringLocate StringTrim StringTrimLeft "
    "StringTrimRight Substring TimestampAdd TimestampDiff CreateNamedStruct",
)
_COMMON = _of(
    f"{_CATALYST}expressions",
    "Alias AttributeReference CurrentDate CurrentRow$ CurrentTime CurrentTimestamp Exists "
    "InSubquery LambdaFunction LateralSubquery ListQuery Literal LocalTimestamp "
    "NamedArgumentExpression ScalarSubquery SortOrder SpecifiedWindowFrame UnboundedFollowing$ "
    "UnboundedPreceding$ UnspecifiedFrame$ WindowExpression WindowSpecDefinition",
) | _of(f"{_CATALYST}expressions.aggregate", "AggregateExpression AnyValue First Last")

STATEMENTS = _of(f"{_CATALYST}plans.logical", "InsertIntoStatement MergeIntoTable UpdateTable")
_DELETE = _of(f"{_CATALYST}plans.logical", "DeleteFromTable")
PARSED_PLANS = (
    _RELATIONAL
    | _of(
        f"{_CATALYST}plans.logical",
        "Pivot Unpivot UnresolvedHint UnresolvedWith WithWindowDefinition",
    )
    | _of(
        f"{_CATALYST}analysis",
        "RelationTimeTravel UnresolvedHaving UnresolvedInlineTable UnresolvedQualify "
        "UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases "
        "UnresolvedTableValuedFunction",
    )
)
PARSED_EXPRESSIONS = (
    _OPERATORS
    | _COMMON
    | _of(
        f"{_CATALYST}analysis",
        "NamedParameter UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue "
        "UnresolvedFunction UnresolvedGenerator UnresolvedOrdinal UnresolvedStar "
        "UnresolvedStarExceptOrReplace",
    )
    | _of(
        f"{_CATALYST}expressions",
        "Cube GroupingSets PipeExpression Rollup SemiStructuredExtract UnresolvedCollation "
        "UnresolvedNamedLambdaVariable UnresolvedWindowExpression",
    )
    | _of(
        f"{_CATALYST}plans.logical",
        "Assignment DeleteAction InsertAction InsertStarAction UpdateAction UpdateStarAction",
    )
)
PARSED_VALUES = words(  # what fields of parsed nodes hold besides nodes, collections and constants
    "java.util.regex.Pattern org.apache.spark.sql.types.Decimal "
    "org.apache.spark.sql.types.Metadata org.apache.spark.util.BestEffortLazyVal "
    "org.apache.spark.util.TransientBestEffortLazyVal"
)

ANALYSED_PLANS = (
    _RELATIONAL
    | _of(
        f"{_CATALYST}plans.logical",
        "AppendData CTERelationDef CTERelationRef Expand OverwriteByExpression Range "
        "RebalancePartitions ResolvedHint SQLFunctionNode UnionLoop UnionLoopRef View Window "
        "WithCTE",
    )
    | _of(f"{_SQL}delta.commands", "DeleteCommand MergeIntoCommand UpdateCommand")
    | _of(f"{_SQL}execution.datasources", "LogicalRelation")
    | _of(f"{_SQL}execution.datasources.v2", "DataSourceV2Relation")
    | _of(f"{_CATALYST}catalog", "HiveTableRelation")
)
ANALYSED_EXPRESSIONS = (
    _OPERATORS
    | _COMMON
    | _of(  # what Spark makes of operators, for the types that they get
        f"{_CATALYST}expressions",
        "AssertNotNull CheckOverflow CheckOverflowInTableInsert CommonExpressionDef "
        "CommonExpressionRef DateAdd DateAddInterval DateAddYMInterval DateSub DatetimeSub "
        "DivideDTInterval DivideInterval DivideYMInterval ExtractANSIIntervalDays "
        "ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalMonths "
        "ExtractANSIIntervalSeconds ExtractANSIIntervalYears GetArrayItem GetArrayStructFields "
        "GetMapValue GetStructField KnownNotNull KnownNullable MultiplyDTInterval "
        "MultiplyInterval MultiplyYMInterval NamedLambdaVariable OuterReference "
        "PreciseTimestampConversion ResolvedCollation SubtractDates "
        "SubtractTimestamps TimestampAddInterval TimestampAddYMInterval TryEval TypedNullLiteral "
        "UpCast With",
    )
    | _of(f"{_CATALYST}expressions.objects", "AssertNotNull")
    | _of(f"{_CATALYST}analysis", "SQLScalarFunction")
    | _of(  # what Spark makes of functions, where that has not the class of its registry
        f"{_CATALYST}expressions",
        "BinaryPad BinaryPredicate Ceil Contains CurrentTimeZone EndsWith Explode Floor "
        "GeneratorOuter Hour Inline MakeTimestamp MakeTimestampFromDateTime MakeTimestampNTZ "
        "MakeTimestampNTZFromDateTime Mask Minute PosExplode RaiseError RoundCeil RoundFloor "
        "Second SecondWithFraction StartsWith StringDecode StringLPad StringRPad TimeBucket "
        "ToCharacter TryMakeTimestamp TryMakeTimestampFromDateTime",
    )
    | _of(
        f"{_CATALYST}expressions.aggregate",
        "CountMinSketchAgg MaxBy MaxMinByK MinBy Mode NoOp$ PercentileCont PercentileDisc "
        "PivotFirst",
    )
    | _of(f"{_CATALYST}expressions.variant", "ParseJson VariantExplode VariantGet")
    | _of(
        f"{_CATALYST}plans.logical",
        "DeltaMergeAction DeltaMergeIntoMatchedDeleteClause DeltaMergeIntoMatchedUpdateClause "
        "DeltaMergeIntoNotMatchedBySourceDeleteClause DeltaMergeIntoNotMatchedBySourceUpdateClause "
        "DeltaMergeIntoNotMatchedInsertClause",
    )
)

SUBQUERIES = words("Exists InSubquery LateralSubquery ListQuery ScalarSubquery")

_SAID = {  # how a refused node is called in a message
    "CompoundBody": "SQL scripting",
    "ScriptTransformation": "TRANSFORM .. USING",
    "UnresolvedExecuteImmediate": "EXECUTE IMMEDIATE",
    "ExpressionWithUnresolvedIdentifier": "IDENTIFIER(..)",
    "PlanWithUnresolvedIdentifier": "IDENTIFIER(..)",
    "NamePlaceholder": "struct(*)",
    "NamedStreamingRelation": "STREAM",
    "OverwriteByExpression": "INSERT .. REPLACE WHERE",
    "Project": "SELECT",
    "RelationTimeTravel": "VERSION AS OF",
}


def unmarked(statement: Part) -> str | None:
    """Which of `engine.core.policy.UNMARKED` a parsed statement is, if any: DELETE leaves no commit
    where it deletes nothing, and what overwrites is repeated over newer rows."""
    if statement.class_name in _DELETE:
        return "delete"
    overwrites = statement.class_name in STATEMENTS and statement.flag("overwrite")
    return "insert_overwrite" if overwrites else None


def said(kind: str) -> str:
    """A simple class name in words: `CreateSQLFunctionCommand` is CREATE SQL FUNCTION."""
    if kind in _SAID:
        return _SAID[kind]
    name = kind.removeprefix("Unresolved").removeprefix("Resolved")
    for ending in ("Command", "Statement", "Exec"):
        name = name.removesuffix(ending) or name
    return " ".join(_split(name)).upper()


def _split(name: str) -> list[str]:
    """The words of a name in camel case; capitals in a row are one word."""
    found = [""]
    for at, letter in enumerate(name):
        before, after = name[at - 1 : at], name[at + 1 : at + 2]
        if letter.isupper() and before and (not before.isupper() or after.islower()):
            found.append("")
        found[-1] += letter
    return found
