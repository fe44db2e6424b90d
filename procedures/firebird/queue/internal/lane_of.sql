-- lane_of: the lane of a message in a fair queue; NULL in other queues.

SET TERM ^ ;

CREATE OR ALTER FUNCTION imq_lane_of (
    p_type mq_name,
    p_priority smallint,
    p_id bigint
)
RETURNS mq_lane
AS
BEGIN
    RETURN IIF((SELECT fair FROM imq_policy(:p_type)) = 1, LPAD(p_priority + 32768, 5, '0')
        || COALESCE((SELECT m.group_key FROM mq_message AS m WHERE m.id = :p_id), ''), NULL);
END^

SET TERM ; ^
