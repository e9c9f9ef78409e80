package tidegate;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.delta.OptimisticTransaction;
import org.apache.spark.sql.delta.TransactionExecutionObserver;
import org.apache.spark.sql.delta.TransactionExecutionObserver$;

/**
 * Runs one INSERT whose commit carries the markers of several entries.
 *
 * A session can name one marker only. This observer of the thread's transactions adds the markers
 * to the transaction that Delta's own INSERT begins, and has the transaction read them: another
 * writer of one of them is a conflict, as with the marker of a session.
 */
public final class SharedCommit implements TransactionExecutionObserver {
    private scala.Option next = scala.Option.empty();
    private String[] appIds;
    private long[] first;
    private long[] last;
    private boolean began;

    /** Runs a plan. Its commit marks each of `appIds` with its `last` number, all as lists of
     * lines. Raises IllegalStateException, and commits nothing, if a marker stands at the `first`
     * of its numbers or above: some of the entries are not to be run. */
    public void run(
        SparkSession session, LogicalPlan plan, String appIds, String first, String last
    ) {
        SharedCommit observer = new SharedCommit();
        observer.appIds = appIds.split("\n");
        observer.first = numbers(first);
        observer.last = numbers(last);
        TransactionExecutionObserver before =
            (TransactionExecutionObserver) TransactionExecutionObserver$.MODULE$.getObserver();
        TransactionExecutionObserver$.MODULE$.setObserver(observer);
        try {
            Dataset$.MODULE$.ofRows(session, plan);
        } finally {
            TransactionExecutionObserver$.MODULE$.setObserver(before);
        }
    }

    public OptimisticTransaction startingTransaction(scala.Function0 begin) {
        OptimisticTransaction transaction = (OptimisticTransaction) begin.apply();
        if (this.began) {
            return transaction; // of what Delta does after a commit, such as to compact
        }
        this.began = true;
        scala.Option now = scala.Option.apply(Long.valueOf(transaction.clock().getTimeMillis()));
        for (int at = 0; at < this.appIds.length; at++) {
            if (transaction.txnVersion(this.appIds[at]) >= this.first[at]) {
                throw new IllegalStateException("a marker was passed: " + this.appIds[at]);
            }
            transaction.updateSetTransaction(this.appIds[at], this.last[at], now);
        }
        return transaction;
    }

    private static long[] numbers(String lines) {
        String[] texts = lines.split("\n");
        long[] found = new long[texts.length];
        for (int at = 0; at < texts.length; at++) {
            found[at] = Long.parseLong(texts[at]);
        }
        return found;
    }

    // What else an observer has to have.

    public Object preparingCommit(scala.Function0 prepare) {
        return prepare.apply();
    }

    public void beginDoCommit() {
    }

    public void beginBackfill() {
    }

    public void beginPostCommit() {
    }

    public void transactionCommitted() {
    }

    public void transactionAborted() {
    }

    public TransactionExecutionObserver createChild() {
        return this;
    }

    public scala.Option nextObserver() {
        return this.next;
    }

    public void nextObserver_$eq(scala.Option observer) {
        this.next = observer;
    }

    public scala.Option getNextObserver() {
        return this.next;
    }

    public void setNextObserver(Object observer) {
        this.next = scala.Option.apply(observer);
    }

    public void advanceToNextThreadObserver() {
    }
}
