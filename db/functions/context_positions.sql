-- The positions of the messages around a position of a thread: before_count
-- before it and after_count after it, in the thread's order, each with its
-- distance (-1 is the one just before). The position itself is not among them.
-- Reads before_count + after_count entries of messages_thread_order_idx. One
-- SELECT without SET, so that PostgreSQL plans it as part of its caller.
CREATE OR REPLACE FUNCTION recall.context_positions(
    of_thread_id text, of_created_at timestamptz, of_seq bigint, before_count bigint, after_count bigint
) RETURNS TABLE (created_at timestamptz, seq bigint, distance bigint)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    (
        SELECT m.created_at, m.seq, -row_number() OVER (ORDER BY m.created_at DESC, m.seq DESC) AS distance
        FROM recall.messages AS m
        WHERE m.thread_id = of_thread_id
            AND (m.created_at, m.seq) < (of_created_at, of_seq)
        ORDER BY m.created_at DESC, m.seq DESC
        LIMIT before_count
    )
    UNION ALL
    (
        SELECT m.created_at, m.seq, row_number() OVER (ORDER BY m.created_at, m.seq) AS distance
        FROM recall.messages AS m
        WHERE m.thread_id = of_thread_id
            AND (m.created_at, m.seq) > (of_created_at, of_seq)
        ORDER BY m.created_at, m.seq
        LIMIT after_count
    );
END;
