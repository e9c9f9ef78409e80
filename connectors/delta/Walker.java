package tidegate;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry$;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Project$;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.SQLQueryContext;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.types.DataType;

/**
 * Parses texts under a session's own settings, and lists all nodes of a plan in one call.
 *
 * The walk enters every field that a node stores, through options, sequences, sets, maps, arrays,
 * tuples and other products. It skips two kinds of fields: lazy values, which the node computes
 * from the others, and the place in the text.
 */
public final class Walker {
    private static final int STEPS_MAX = 5000000;
    private static final int TEXT_MAX = 1000;
    private static final ObjectMapper JSON = new ObjectMapper(
        new JsonFactory().enable(JsonGenerator.Feature.ESCAPE_NON_ASCII)); // half a surrogate pair
    private final Map stored = new HashMap(); // the fields by class

    /** Parses a text as a plan, or as an expression. `session` is active meanwhile: a parser takes
     * the settings of the active session, even if it belongs to another one. */
    public Object parse(
        org.apache.spark.sql.classic.SparkSession session, String text, boolean expression
    ) throws Exception {
        scala.Option active = org.apache.spark.sql.SparkSession.getActiveSession();
        org.apache.spark.sql.SparkSession.setActiveSession(session);
        try {
            ParserInterface parser = session.sessionState().sqlParser();
            return expression ? (Object) parser.parseExpression(text) : parser.parsePlan(text);
        } finally {
            if (active.isDefined()) {
                org.apache.spark.sql.SparkSession.setActiveSession(
                    (org.apache.spark.sql.SparkSession) active.get());
            } else {
                org.apache.spark.sql.SparkSession.clearActiveSession();
            }
        }
    }

    /** Lists `root` and all nodes below it. It does not enter the session's own views that are
     * called as in `names` (separated by spaces). */
    public Walk walk(Object root, String names) throws Exception {
        Collection leaves = java.util.Arrays.asList(names.split(" "));
        Walk walk = new Walk();
        ArrayDeque open = new ArrayDeque();
        open.push(new Object[] {root, Integer.valueOf(-1), ""});
        for (int steps = 0; !open.isEmpty(); steps++) {
            if (steps > STEPS_MAX) {
                throw new IllegalStateException("the plan is too large to be judged");
            }
            Object[] next = (Object[]) open.pop();
            int owner = ((Integer) next[1]).intValue();
            this.enter(walk, open, next[0], owner, (String) next[2], leaves);
        }
        return walk;
    }

    /** Number, name and type of each column of an analysed plan, as a flat JSON list:
     * ["3", "amount", "int", "4", "of", "struct<a:int,b:date>"]. */
    public String output(QueryPlan plan) throws Exception {
        List found = new ArrayList();
        scala.collection.Iterator columns = plan.output().iterator();
        while (columns.hasNext()) {
            Attribute column = (Attribute) columns.next();
            found.add(String.valueOf(column.exprId().id()));
            found.add(column.name());
            found.add(column.dataType().catalogString());
        }
        return JSON.writeValueAsString(found);
    }

    /** The classes of functions by Spark's own registries, as a JSON list. `names`: of the
     * functions, separated by spaces. */
    public String classes(String names) throws Exception {
        Collection found = new LinkedHashSet();
        for (String called : names.split(" ")) {
            FunctionIdentifier name = new FunctionIdentifier(called);
            scala.Option info = FunctionRegistry$.MODULE$.builtin().lookupFunction(name);
            scala.Option rows = TableFunctionRegistry$.MODULE$.builtin().lookupFunction(name);
            if (info.isDefined()) {
                found.add(((ExpressionInfo) info.get()).getClassName());
            }
            if (rows.isDefined()) {
                found.add(((ExpressionInfo) rows.get()).getClassName());
            }
        }
        return JSON.writeValueAsString(found);
    }

    private void enter(
        Walk walk, ArrayDeque open, Object value, int owner, String field, Collection leaves
    ) throws Exception {
        if (value == null || value == scala.None$.MODULE$
            || value instanceof scala.Enumeration.Value || value instanceof UUID
            || value == Boolean.FALSE || value instanceof SQLQueryContext) {
            return;
        }
        if (value instanceof TreeNode) {
            int number = walk.add((TreeNode) value, owner, field);
            if (number >= 0 && isLeaf(value, leaves)) {
                this.enter(walk, open, ((View) value).desc(), number, "desc", leaves);
                walk.say(number, "isTempView", "true");
            } else if (number >= 0) {
                List fields = this.fieldsOf(value);
                for (int at = fields.size() - 1; at >= 0; at--) {
                    Object[] named = (Object[]) fields.get(at);
                    open.push(new Object[] {named[1], Integer.valueOf(number), named[0]});
                }
            }
        } else if (value instanceof CatalogTable) {
            TableIdentifier name = ((CatalogTable) value).identifier();
            walk.say(owner, field, name.catalog().isDefined() ? (String) name.catalog().get() : "");
            walk.say(owner, field, name.database().isDefined() ? (String) name.database().get() : "");
            walk.say(owner, field, name.table());
        } else if (value instanceof CatalogPlugin) {
            walk.say(owner, field, ((CatalogPlugin) value).name());
        } else if (value instanceof Identifier) {
            for (String space : ((Identifier) value).namespace()) {
                walk.say(owner, field, space);
            }
            walk.say(owner, field, ((Identifier) value).name());
        } else if (isText(value)) {
            walk.say(owner, field, said(value));
        } else {
            List parts = this.parts(value);
            if (parts == null) {
                walk.meet(owner, value.getClass());
            } else {
                for (int at = parts.size() - 1; at >= 0; at--) {
                    open.push(new Object[] {parts.get(at), Integer.valueOf(owner), field});
                }
            }
        }
    }

    private static boolean isLeaf(Object node, Collection leaves) {
        if (!(node instanceof View) || ((View) node).desc() == null) {
            return false;
        }
        TableIdentifier name = ((View) node).desc().identifier();
        boolean own = ((View) node).isTempView() && name.database().isEmpty();
        return own && leaves.contains(name.table().toLowerCase(java.util.Locale.ROOT));
    }

    private static boolean isText(Object value) {
        return value instanceof String || value instanceof Number || value instanceof Boolean
            || value instanceof Character || value instanceof Enum || value instanceof Class
            || value instanceof DataType || value instanceof InternalRow
            || value instanceof BaseRelation || value instanceof Table
            || value instanceof org.apache.spark.unsafe.types.UTF8String
            || (value instanceof scala.Product && ((scala.Product) value).productArity() == 0
                && !(value instanceof scala.collection.Iterable));
    }

    private static String said(Object value) {
        if (value instanceof Class) {
            return ((Class) value).getName();
        }
        if (value instanceof BaseRelation || value instanceof Table) {
            return value.getClass().getName();
        }
        if (value instanceof DataType) {
            return ((DataType) value).typeName();
        }
        if (value instanceof InternalRow) {
            return "row";
        }
        String text = String.valueOf(value);
        return text.length() > TEXT_MAX ? text.substring(0, TEXT_MAX) + "\u2026" : text;
    }

    /** What a value holds, null where it is neither a collection nor a product. */
    private List parts(Object value) {
        List found = new ArrayList();
        if (value instanceof scala.collection.Iterable || value instanceof scala.Product) {
            scala.collection.Iterator each = value instanceof scala.collection.Iterable
                ? ((scala.collection.Iterable) value).iterator()
                : ((scala.Product) value).productIterator();
            while (each.hasNext()) {
                found.add(each.next());
            }
        } else if (value instanceof Collection) {
            found.addAll((Collection) value);
        } else if (value instanceof Map) {
            found.addAll(((Map) value).keySet());
            found.addAll(((Map) value).values());
        } else if (value.getClass().isArray()) {
            if (!value.getClass().getComponentType().isPrimitive()) {
                for (int at = 0; at < Array.getLength(value); at++) {
                    found.add(Array.get(value, at));
                }
            }
        } else {
            return null;
        }
        return found;
    }

    private List fieldsOf(Object node) throws Exception {
        Field[] fields = (Field[]) this.stored.get(node.getClass());
        if (fields == null) {
            fields = storedFields(node.getClass());
            this.stored.put(node.getClass(), fields);
        }
        List found = new ArrayList();
        Map known = new HashMap(); // a class and its parent may store one value twice
        for (Field field : fields) {
            String name = field.getName();
            Object value = field.get(node);
            if (!known.containsKey(name) || known.get(name) != value) {
                known.put(name, value);
                found.add(new Object[] {name, value});
            }
        }
        return found;
    }

    private static Field[] storedFields(Class of) throws Exception {
        List found = new ArrayList();
        for (Class at = of; at != TreeNode.class; at = at.getSuperclass()) {
            if (at == QueryPlan.class || at == LogicalPlan.class || at == Expression.class) {
                continue; // what they keep of a node says how far it is resolved
            }
            List declared = new ArrayList();
            for (Field field : at.getDeclaredFields()) {
                String name = field.getName();
                boolean own = !Modifier.isStatic(field.getModifiers()) && !isLazy(at, name);
                if (own && !name.startsWith("bitmap$") && !name.equals("$outer")) {
                    field.setAccessible(true);
                    declared.add(field);
                }
            }
            found.addAll(0, declared);
        }
        return (Field[]) found.toArray(new Field[0]);
    }

    private static boolean isLazy(Class of, String field) {
        for (java.lang.reflect.Method method : of.getDeclaredMethods()) {
            if (method.getName().equals(field + "$lzycompute")) {
                return true;
            }
        }
        return false;
    }

    /** The nodes of one plan. Each has the number of the node that holds it; the root has -1. */
    public static final class Walk {
        private static final int OWNER = 2;
        private static final int TEXTS = 6;
        private static final int SLICE = 7000; // py4j pauses 40 ms within a longer answer
        private final List nodes = new ArrayList();
        private final List rows = new ArrayList(); // one a node, see `json`
        private final Map classes = new LinkedHashMap(); // name -> number
        private final Collection others = new LinkedHashSet();
        private String json;

        public Object node(int number) {
            return this.nodes.get(number);
        }

        /** Adds a node and returns its number; -1 for a plan that its owner holds already. */
        int add(TreeNode node, int owner, String field) {
            for (int at = owner + 1; node instanceof QueryPlan && at < this.nodes.size(); at++) {
                boolean same = this.nodes.get(at) == node;
                if (same && ((Integer) this.row(at)[OWNER]).intValue() == owner) {
                    return -1;
                }
            }
            String name = node.getClass().getName();
            if (!this.classes.containsKey(name)) {
                this.classes.put(name, Integer.valueOf(this.classes.size()));
            }
            boolean known = node.origin() != null;
            this.nodes.add(node);
            this.rows.add(new Object[] {
                this.classes.get(name), Boolean.valueOf(node instanceof QueryPlan),
                Integer.valueOf(owner), field, known ? value(node.origin().startIndex()) : null,
                known ? value(node.origin().stopIndex()) : null, new LinkedHashMap()});
            int number = this.nodes.size() - 1;
            if (node instanceof Project
                && node.getTagValue(Project$.MODULE$.hiddenOutputTag()).isDefined()) {
                this.say(number, "hiddenOutput", "true");
            }
            return number;
        }

        void say(int owner, String field, String text) {
            if (owner < 0) {
                return;
            }
            Map of = (Map) this.row(owner)[TEXTS];
            List said = (List) of.get(field);
            if (said == null) {
                said = new ArrayList();
                of.put(field, said);
            }
            said.add(text);
        }

        void meet(int owner, Class other) {
            this.others.add(other.getName());
        }

        /** A slice, from the character `start` on, of this JSON; "" after its end:
         *
         * {"classes": [name, ..],  // of nodes
         *  "others": [name, ..],   // of objects that are not nodes and were not entered
         *  "nodes": [[number of its class, is it a plan, owner, field, start, stop,
         *             {field: [text, ..]}], ..]}
         */
        public String json(int start) throws Exception {
            if (this.json == null) {
                Map all = new LinkedHashMap();
                all.put("classes", this.classes.keySet());
                all.put("others", this.others);
                all.put("nodes", this.rows);
                this.json = JSON.writeValueAsString(all);
            }
            int end = Math.min(start + SLICE, this.json.length());
            return start >= end ? "" : this.json.substring(start, end);
        }

        private Object[] row(int number) {
            return (Object[]) this.rows.get(number);
        }

        private static Object value(scala.Option found) {
            return found == null || found.isEmpty() ? null : found.get();
        }
    }
}
