-- Schedules: messages that are sent at the times of a cron expression. See docs/decisions/0015_schedules.md.

CREATE TABLE IF NOT EXISTS mq_schedule (
    name varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    next_at datetime(6),
    moved_at datetime(6) NOT NULL,
    last_at datetime(6),
    last_id bigint,
    priority smallint NOT NULL,
    overlap tinyint NOT NULL,
    type varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */ NOT NULL,
    cron varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    time_zone varchar(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    body longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    headers mediumtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    group_key varchar(200) CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */,
    PRIMARY KEY (name),
    KEY schedule_due (type, next_at)
) ENGINE = InnoDB COMMENT = 'One row per schedule. next_at: when its next message is due; moved_at: when next_at was set; last_id and last_at: the last message.';
