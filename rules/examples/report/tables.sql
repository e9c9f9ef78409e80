CREATE TABLE delta.`./lake/orders` (order_id BIGINT, amount DECIMAL(12,2))
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/reports` (since TIMESTAMP, until TIMESTAMP, orders BIGINT, total DECIMAL(22,2))
USING delta;
