-- drop_polled: delete a polling table's settings and all its entries.

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_polled(IN p_name longtext CHARACTER SET utf8mb4)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    CALL imq_use_polled(p_name, 'change');
    DELETE FROM mq_polled_batch WHERE name = p_name;
    DELETE FROM mq_polled_row WHERE name = p_name;
    DELETE FROM mq_polled_mark WHERE name = p_name;
    DELETE FROM mq_polled WHERE name = p_name;
END
