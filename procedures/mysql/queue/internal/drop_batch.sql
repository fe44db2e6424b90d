-- drop_batch: end a claim: delete the row of its batch and return what it held.
-- Returns:     p_type, p_consumer, p_lease_seconds and p_items (a JSON array of [id, attempt, ...]) of the claim; NULL when
--              the lease was lost
-- Transaction: joins the caller's; calls for the same batch wait for each other

CREATE DEFINER = 'mq_owner'@'localhost' PROCEDURE imq_drop_batch(
    IN p_batch_key longtext CHARACTER SET utf8mb4, OUT p_type varchar(200) CHARACTER SET utf8mb4,
    OUT p_consumer varchar(200) CHARACTER SET utf8mb4, OUT p_lease_seconds int, OUT p_items longtext CHARACTER SET utf8mb4
)
SQL SECURITY DEFINER MODIFIES SQL DATA
BEGIN
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET p_items = NULL;
    SELECT type, consumer, lease_seconds, items INTO p_type, p_consumer, p_lease_seconds, p_items
    FROM mq_batch WHERE batch_key = p_batch_key FOR UPDATE;
    IF p_items IS NOT NULL THEN
        DELETE FROM mq_batch WHERE batch_key = p_batch_key;
    END IF;
END
