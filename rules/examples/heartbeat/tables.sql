CREATE TABLE delta.`./lake/alerts` (device STRING, what STRING, since TIMESTAMP, at TIMESTAMP)
USING delta;
