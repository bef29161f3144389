-- +goose Up
-- Events of installs. day is that of at, in days since 1970; install_hash is the beginning of a keyed hash; id is the random
-- half of the event's. The key finds an event that is sent again, all of an install and all of a day. at and received_at are
-- to the hour, so that they do not join an event with a row of another table; where an hour saw one link alone, they do.
CREATE TABLE telemetry_events (
	day          BIGINT NOT NULL,
	install_hash BIGINT NOT NULL,
	id           BIGINT NOT NULL,
	at           BIGINT NOT NULL,
	received_at  BIGINT NOT NULL,
	name         TEXT NOT NULL,
	fields       TEXT NOT NULL,
	PRIMARY KEY (day, install_hash, id)
);

-- +goose Down
DROP TABLE telemetry_events;
