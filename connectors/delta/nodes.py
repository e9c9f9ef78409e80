"""The classes of plan nodes that SQL of a rulebook may consist of, parsed and analysed (G27).

They are Spark's and Delta's own classes. A node of any other class is refused, and named in the
message. The classes that function calls become in an analysed plan are not listed here: they follow
from the names in `connectors.delta.functions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.connectors.delta.plans import Part, words


def _of(names: Mapping[str, str]) -> frozenset[str]:
    """Qualified names of classes. `names`: by their package below Spark's SQL."""
    some = ((package, name) for package, text in names.items() for name in text.split())
    return frozenset(f"org.apache.spark.sql.{package}.{name}" for package, name in some)


_RELATIONAL = _of(
    {
        "catalyst.plans.logical": "Aggregate Distinct Except Filter Generate GlobalLimit Intersect "
        "Join LateralJoin LocalLimit LocalRelation Offset OneRowRelation Project Repartition "
        "RepartitionByExpression Sample Sort SubqueryAlias Union",
        "catalyst.expressions": "PipeOperator",
    }
)
_OPERATORS = _of(
    {
        "catalyst.expressions": "Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus "
        "UnaryPositive BitwiseAnd BitwiseNot BitwiseOr BitwiseXor ShiftLeft ShiftRight "
        "ShiftRightUnsigned And Or Not EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan "
        "GreaterThanOrEqual In IsNull IsNotNull Between ILike Like LikeAll LikeAny NotLikeAll "
        "NotLikeAny RLike CaseWhen If Coalesce Cast Collate Concat Lower Overlay StringLocate "
        "StringTrim StringTrimLeft StringTrimRight Substring TimestampAdd TimestampDiff "
        "CreateNamedStruct",
    }
)
_COMMON = _of(
    {
        "catalyst.expressions": "Alias AttributeReference CurrentDate CurrentRow$ CurrentTime "
        "CurrentTimestamp Exists InSubquery LambdaFunction LateralSubquery ListQuery Literal "
        "LocalTimestamp NamedArgumentExpression ScalarSubquery SortOrder SpecifiedWindowFrame "
        "UnboundedFollowing$ UnboundedPreceding$ UnspecifiedFrame$ WindowExpression "
        "WindowSpecDefinition",
        "catalyst.expressions.aggregate": "AggregateExpression AnyValue First Last",
    }
)

STATEMENTS = _of({"catalyst.plans.logical": "InsertIntoStatement MergeIntoTable UpdateTable"})
_DELETE = _of({"catalyst.plans.logical": "DeleteFromTable"})
PARSED_PLANS = _RELATIONAL | _of(
    {
        "catalyst.plans.logical": "Pivot Unpivot UnresolvedHint UnresolvedWith "
        "WithWindowDefinition",
        "catalyst.analysis": "RelationTimeTravel UnresolvedHaving UnresolvedInlineTable "
        "UnresolvedQualify UnresolvedRelation UnresolvedSubqueryColumnAliases UnresolvedTVFAliases "
        "UnresolvedTableValuedFunction",
    }
)
PARSED_EXPRESSIONS = (
    _OPERATORS
    | _COMMON
    | _of(
        {
            "catalyst.analysis": "NamedParameter UnresolvedAlias UnresolvedAttribute "
            "UnresolvedExtractValue UnresolvedFunction UnresolvedGenerator UnresolvedOrdinal "
            "UnresolvedStar UnresolvedStarExceptOrReplace",
            "catalyst.expressions": "Cube GroupingSets PipeExpression Rollup SemiStructuredExtract "
            "UnresolvedCollation UnresolvedNamedLambdaVariable UnresolvedWindowExpression",
            "catalyst.plans.logical": "Assignment DeleteAction InsertAction InsertStarAction "
            "UpdateAction UpdateStarAction",
        }
    )
)
PARSED_VALUES = words(  # classes of other objects in the fields of parsed nodes
    "java.util.regex.Pattern org.apache.spark.sql.types.Decimal "
    "org.apache.spark.sql.types.Metadata org.apache.spark.util.BestEffortLazyVal "
    "org.apache.spark.util.TransientBestEffortLazyVal"
)

ANALYSED_PLANS = _RELATIONAL | _of(
    {
        "catalyst.plans.logical": "AppendData CTERelationDef CTERelationRef Expand "
        "OverwriteByExpression Range RebalancePartitions ResolvedHint SQLFunctionNode UnionLoop "
        "UnionLoopRef View Window WithCTE",
        "delta.commands": "DeleteCommand MergeIntoCommand UpdateCommand",
        "execution.datasources": "LogicalRelation",
        "execution.datasources.v2": "DataSourceV2Relation",
        "catalyst.catalog": "HiveTableRelation",
    }
)
_OF_OPERATORS = _of(  # what operators become in the analysis, by the types of their operands
    {
        "catalyst.expressions": "AssertNotNull CheckOverflow CheckOverflowInTableInsert "
        "CommonExpressionDef CommonExpressionRef DateAdd DateAddInterval DateAddYMInterval DateSub "
        "DatetimeSub DivideDTInterval DivideInterval DivideYMInterval ExtractANSIIntervalDays "
        "ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalMonths "
        "ExtractANSIIntervalSeconds ExtractANSIIntervalYears GetArrayItem GetArrayStructFields "
        "GetMapValue GetStructField KnownNotNull KnownNullable MultiplyDTInterval MultiplyInterval "
        "MultiplyYMInterval NamedLambdaVariable OuterReference PreciseTimestampConversion "
        "ResolvedCollation SubtractDates SubtractTimestamps TimestampAddInterval "
        "TimestampAddYMInterval TryEval TypedNullLiteral UpCast With",
        "catalyst.expressions.objects": "AssertNotNull",
        "catalyst.analysis": "SQLScalarFunction",
        "delta": "CheckOverflowInTableWrite",
    }
)
_OF_FUNCTIONS = _of(  # what functions become, where Spark's registry has another class
    {
        "catalyst.expressions": "BinaryPad BinaryPredicate Ceil Contains CurrentTimeZone EndsWith "
        "Explode Floor GeneratorOuter Hour Inline MakeTimestamp MakeTimestampFromDateTime "
        "MakeTimestampNTZ MakeTimestampNTZFromDateTime Mask Minute PosExplode RaiseError RoundCeil "
        "RoundFloor Second SecondWithFraction StartsWith StringDecode StringLPad StringRPad "
        "TimeBucket ToCharacter TryMakeTimestamp TryMakeTimestampFromDateTime",
        "catalyst.expressions.aggregate": "CountMinSketchAgg MaxBy MaxMinByK MinBy Mode NoOp$ "
        "PercentileCont PercentileDisc PivotFirst",
        "catalyst.expressions.variant": "ParseJson VariantExplode VariantGet",
        "catalyst.plans.logical": "DeltaMergeAction DeltaMergeIntoMatchedDeleteClause "
        "DeltaMergeIntoMatchedUpdateClause DeltaMergeIntoNotMatchedBySourceDeleteClause "
        "DeltaMergeIntoNotMatchedBySourceUpdateClause DeltaMergeIntoNotMatchedInsertClause",
    }
)
ANALYSED_EXPRESSIONS = _OPERATORS | _COMMON | _OF_OPERATORS | _OF_FUNCTIONS

_WORD_BEGINS = re.compile(r"(?<=[^A-Z])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])")  # in camel case
SUBQUERIES = words("Exists InSubquery LateralSubquery ListQuery ScalarSubquery")

_SAID = {  # refused node -> its name in a message
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
    """Which of `engine.core.policy.UNMARKED` a parsed statement is, if any. A DELETE that deletes
    nothing leaves no commit, hence no marker; an INSERT OVERWRITE that runs again would overwrite
    newer rows."""
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
    return _WORD_BEGINS.sub(" ", name).upper()
