-- +goose Up
-- Events of installs. day is the day of at, in days since 1970. install_hash is the start of a keyed hash, and id is
-- the random half of the event's id. The primary key finds repeated events, the events of an install, and those of a
-- day. at and received_at are rounded to the hour, so that they do not connect an event with a row of another table.
-- If only one link was created within an hour, they still do.
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
