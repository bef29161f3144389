-- +goose Up
-- config is JSON, or NULL for the defaults. updated_link is not a foreign key, because a page outlives the link that
-- changed it.
CREATE TABLE connection_pages (
	account_id   TEXT NOT NULL,
	app_id       TEXT NOT NULL,
	page_id      TEXT NOT NULL UNIQUE,
	version      BIGINT NOT NULL,
	config       TEXT,
	updated_at   BIGINT,
	updated_by   TEXT NOT NULL,
	updated_link TEXT NOT NULL,
	PRIMARY KEY (account_id, app_id),
	FOREIGN KEY (account_id, app_id) REFERENCES projects (account_id, app_id) ON DELETE CASCADE
);

-- +goose Down
DROP TABLE connection_pages;
