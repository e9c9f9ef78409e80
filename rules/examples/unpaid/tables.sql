CREATE TABLE delta.`./lake/orders` (order_id BIGINT, status STRING)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/payments` (payment_id BIGINT, for_order BIGINT, amount DECIMAL(12,2))
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
