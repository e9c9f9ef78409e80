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
    private String[] marks;
    private boolean began;

    /** Runs a plan. Its commit has `marks`, a line each: the number, the one that was seen before
     * (0: none), and the app id. Raises IllegalStateException, and commits nothing, if one of them
     * has another number by now: what was found out about its entries may not hold any more. */
    public void run(SparkSession session, LogicalPlan plan, String marks) {
        SharedCommit observer = new SharedCommit();
        observer.marks = marks.split("\n");
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
        for (int at = 0; at < this.marks.length; at++) {
            String[] mark = this.marks[at].split(" ", 3);
            long found = transaction.txnVersion(mark[2]); // -1: none
            if (Math.max(found, 0L) != Long.parseLong(mark[1])) {
                throw new IllegalStateException("a marker was moved: " + mark[2]);
            }
            transaction.updateSetTransaction(mark[2], Long.parseLong(mark[0]), now);
        }
        return transaction;
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
