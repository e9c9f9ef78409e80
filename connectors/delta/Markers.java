package tidegate;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.delta.DeltaLog$;
import org.apache.spark.sql.delta.DummySnapshot;
import org.apache.spark.sql.delta.Snapshot;
import org.apache.spark.sql.delta.VersionChecksum;
import org.apache.spark.sql.delta.actions.SetTransaction;

/**
 * Lets a snapshot know its markers (set-transaction actions) from its checksum file.
 *
 * A marked statement asks Delta's transaction for its marker. Delta answers from a lazy value of
 * the snapshot, and computes that value from the table's whole state: two Spark jobs after each
 * commit, which take three times as long as the INSERT itself. The checksum file of the same
 * version lists the same markers, up to 100. `prepare` puts them into the lazy value, before Delta
 * asks.
 *
 * The statement stays Delta's own: its casts, defaults and constraints, the table's features, the
 * ids that it has read, its conflicts, and the skip of an equal or lower marker. A class that
 * writes the rows through `WriteIntoDelta` would have to do all of these again, and would serve
 * INSERT only. If another commit comes in between, Delta takes a snapshot that is not prepared,
 * and computes its markers.
 */
public final class Markers {
    private Field value; // of the lazy value `transactions`
    private Field flags; // which lazy values of a snapshot are known
    private int flag; // the bit of `transactions` among them
    private boolean looked; // for the three above

    /** Finds out where a snapshot keeps its lazy value: an empty snapshot computes it, and one bit
     * changes. It has the metadata and protocol of `like`. */
    private void find(Snapshot like) throws Exception {
        Snapshot probe = new DummySnapshot(like.deltaLog().logPath(), like.deltaLog(),
            like.metadata(), scala.Option.empty(), scala.Option.apply(like.protocol()));
        probe.setTransactions(); // all that it is computed from
        List fields = new ArrayList();
        List before = new ArrayList();
        Field[] declared = Snapshot.class.getDeclaredFields();
        for (int at = 0; at < declared.length; at++) {
            if (declared[at].getName().startsWith("bitmap$")) {
                declared[at].setAccessible(true);
                fields.add(declared[at]);
                before.add(declared[at].get(probe));
            }
        }
        Object markers = probe.transactions();
        Field changed = null;
        for (int at = 0; at < fields.size(); at++) {
            if (!((Field) fields.get(at)).get(probe).equals(before.get(at))) {
                check(changed == null);
                changed = (Field) fields.get(at);
                check(changed.getType() == int.class);
            }
        }
        check(changed != null);
        this.flags = changed;
        int unknown = ((Integer) before.get(fields.indexOf(changed))).intValue();
        this.flag = changed.getInt(probe) ^ unknown;
        check(Integer.bitCount(this.flag) == 1);
        Field lazy = Snapshot.class.getDeclaredField("transactions");
        lazy.setAccessible(true);
        check(lazy.get(probe) == markers);
        this.value = lazy;
    }

    /** Puts the checksum's markers into a snapshot. Returns whether it has them now: false where it
     * has no checksum, the checksum does not list them, or the table lets them expire; and for a
     * Delta that keeps the lazy value in another way, of which the first call raises
     * IllegalStateException. */
    public synchronized boolean prepare(Snapshot snapshot) throws Exception {
        if (!this.looked) {
            this.looked = true;
            find(snapshot);
        }
        if (this.value == null) {
            return false;
        }
        scala.Option expire =
            DeltaLog$.MODULE$.minSetTransactionRetentionInterval(snapshot.metadata());
        if (snapshot.checksumOpt().isEmpty() || expire.isDefined()) {
            return false;
        }
        VersionChecksum checksum = (VersionChecksum) snapshot.checksumOpt().get();
        if (checksum.setTransactions().isEmpty()) {
            return false;
        }
        scala.collection.Iterator each =
            ((scala.collection.Iterable) checksum.setTransactions().get()).iterator();
        scala.collection.immutable.Map markers =
            (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
        while (each.hasNext()) {
            SetTransaction one = (SetTransaction) each.next();
            markers = (scala.collection.immutable.Map)
                markers.updated(one.appId(), Long.valueOf(one.version()));
        }
        synchronized (snapshot) { // as Scala does to compute a lazy value
            int known = this.flags.getInt(snapshot);
            if ((known & this.flag) == 0) {
                this.value.set(snapshot, markers);
                this.flags.setInt(snapshot, known | this.flag);
            }
        }
        return true;
    }

    private static void check(boolean holds) {
        if (!holds) {
            throw new IllegalStateException("Delta keeps the markers of a snapshot in another way");
        }
    }
}
