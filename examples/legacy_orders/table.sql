-- The table as it has been there for years: a status of one letter, N new, A in work, D done, E failed. Other programs
-- insert orders and read them.
CREATE TABLE legacy_orders (
    order_no integer NOT NULL PRIMARY KEY,
    item varchar(100) NOT NULL,
    email varchar(100),
    status char(1) DEFAULT 'N' NOT NULL
);

-- What is new: claims go by it.
CREATE INDEX legacy_orders_status ON legacy_orders (status, order_no);

INSERT INTO legacy_orders (order_no, item, email) VALUES (1, 'tea', 'ada@example.org');
INSERT INTO legacy_orders (order_no, item, email) VALUES (2, 'milk', NULL);
INSERT INTO legacy_orders (order_no, item, email) VALUES (3, 'sugar', 'grace.example.org');
INSERT INTO legacy_orders (order_no, item, email, status) VALUES (4, 'salt', 'joan@example.org', 'D');
