CREATE TABLE delta.`./lake/customers` (customer_id BIGINT, name STRING, phone STRING)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/accounts` (
  account_id BIGINT, customer_id BIGINT, balance DECIMAL(12, 2), blocked BOOLEAN
)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/transactions` (
  transaction_id BIGINT, account_id BIGINT, customer_id BIGINT, kind STRING, amount DECIMAL(12, 2)
)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
CREATE TABLE delta.`./lake/alerts` (
  rule STRING, account_id BIGINT, name STRING, text STRING, at TIMESTAMP
)
USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true, delta.enableInCommitTimestamps = true);
INSERT INTO delta.`./lake/customers` VALUES
  (1, 'Ada', '555-01'), (2, 'Blaise', '555-02'), (3, 'Carl', '555-03'), (4, 'Dorothy', '555-04');
INSERT INTO delta.`./lake/accounts` VALUES
  (10, 1, 250.00, false), (20, 2, 900.00, false), (30, 3, 40.00, false), (40, 4, 75.50, false);
