"""Arrow types of described columns, and pages as Arrow tables; they need pyarrow, and nothing else imports it here."""
