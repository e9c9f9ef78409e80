CREATE TABLE delta.`./lake/orders` (order_id BIGINT, item STRING, quantity INT, status STRING)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/payments` (payment_id BIGINT, for_order BIGINT, amount DECIMAL(12, 2))
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/stock` (item STRING, quantity BIGINT)
USING delta;
CREATE TABLE delta.`./lake/refunds` (order_id BIGINT, amount DECIMAL(12, 2), at TIMESTAMP)
USING delta;
INSERT INTO delta.`./lake/stock` VALUES ('lamp', 5), ('desk', 2);
