package tidegate;

import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** Finds every place of a plan that holds a node, and puts nodes of other classes there. */
public final class Planter {
    /** A field of an object, or an element of an array, and the node that it holds. */
    public static final class Slot {
        Object holder;
        Field field;
        int index;
        TreeNode held;

        public boolean isPlan() {
            return this.held instanceof QueryPlan;
        }

        public String name() {
            String of = this.holder.getClass().getSimpleName();
            return this.field == null ? of + "[" + this.index + "]" : of + "." + this.field.getName();
        }
    }

    /** The node that was held comes back by `restore`; false where the place takes no such node. */
    public boolean plant(Slot slot, String name) throws Exception {
        Field instance = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        instance.setAccessible(true);
        sun.misc.Unsafe unsafe = (sun.misc.Unsafe) instance.get(null);
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        Object planted = unsafe.allocateInstance(Class.forName(name, false, loader));
        Field origin = TreeNode.class.getDeclaredField("origin");
        origin.setAccessible(true);
        origin.set(planted, slot.held.origin());
        return this.put(slot, planted);
    }

    public boolean restore(Slot slot) throws Exception {
        return this.put(slot, slot.held);
    }

    private boolean put(Slot slot, Object value) throws Exception {
        try {
            if (slot.field == null) {
                Array.set(slot.holder, slot.index, value);
            } else {
                slot.field.set(slot.holder, value);
            }
            return true;
        } catch (IllegalArgumentException error) {
            return false;
        }
    }

    public List slots(Object root) throws Exception {
        List found = new ArrayList();
        List open = new ArrayList();
        Map known = new IdentityHashMap();
        open.add(root);
        while (!open.isEmpty()) {
            Object holder = open.remove(open.size() - 1);
            if (known.put(holder, "") != null || isLeaf(holder)) {
                continue;
            }
            if (holder instanceof Object[]) {
                Object[] each = (Object[]) holder;
                for (int at = 0; at < each.length; at++) {
                    this.meet(found, open, holder, null, at, each[at]);
                }
                continue;
            }
            for (Class at = holder.getClass(); at != null && at != TreeNode.class;
                at = at.getSuperclass()) {
                if (at == QueryPlan.class || at == LogicalPlan.class || at == Expression.class) {
                    continue;
                }
                Field[] fields = at.getDeclaredFields();
                for (int n = 0; n < fields.length; n++) {
                    Field field = fields[n];
                    if (!Modifier.isStatic(field.getModifiers()) && !field.getType().isPrimitive()
                        && !isLazy(at, field.getName()) && !field.getName().equals("$outer")) {
                        field.setAccessible(true);
                        this.meet(found, open, holder, field, 0, field.get(holder));
                    }
                }
            }
        }
        return found;
    }

    private void meet(List found, List open, Object holder, Field field, int at, Object value) {
        if (value instanceof TreeNode) {
            Slot slot = new Slot();
            slot.holder = holder;
            slot.field = field;
            slot.index = at;
            slot.held = (TreeNode) value;
            found.add(slot);
        }
        if (value instanceof TreeNode || value instanceof Object[] || isHolder(value)) {
            open.add(value);
        }
    }

    private static boolean isHolder(Object value) {
        if (value == null) {
            return false;
        }
        String name = value.getClass().getName();
        return value instanceof scala.collection.Iterable || value instanceof scala.Option
            || name.startsWith("scala.Tuple") || name.startsWith("scala.util.")
            || name.startsWith("scala.collection.immutable.");
    }

    private static boolean isLeaf(Object node) {
        return node instanceof View && ((View) node).isTempView();
    }

    private static boolean isLazy(Class of, String field) {
        java.lang.reflect.Method[] methods = of.getDeclaredMethods();
        for (int n = 0; n < methods.length; n++) {
            if (methods[n].getName().equals(field + "$lzycompute")) {
                return true;
            }
        }
        return false;
    }

    /** The names of all plans and expressions on the class path, p or e before each. */
    public String[] classes(String[] jars) throws Exception {
        List found = new ArrayList();
        ClassLoader loader = Thread.currentThread().getContextClassLoader();
        for (int n = 0; n < jars.length; n++) {
            JarFile jar = new JarFile(new File(jars[n]));
            Enumeration entries = jar.entries();
            while (entries.hasMoreElements()) {
                String name = ((JarEntry) entries.nextElement()).getName();
                if (!name.startsWith("org/apache/spark/sql/") || !name.endsWith(".class")) {
                    continue;
                }
                name = name.substring(0, name.length() - 6).replace('/', '.');
                try {
                    Class of = Class.forName(name, false, loader);
                    boolean plan = LogicalPlan.class.isAssignableFrom(of);
                    boolean node = plan || Expression.class.isAssignableFrom(of);
                    if (node && !Modifier.isAbstract(of.getModifiers())) {
                        found.add((plan ? "p" : "e") + name);
                    }
                } catch (Throwable absent) {
                    continue; // what it extends is on no class path
                }
            }
            jar.close();
        }
        return (String[]) found.toArray(new String[0]);
    }
}
