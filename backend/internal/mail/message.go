// Package mail sends mail to account holders through the operator's SMTP server. It has a bounded queue and a single
// sender, and retries after temporary errors. It knows nothing about accounts or about what the links in its mails do,
// and it logs neither addresses nor links.
package mail

// Message is a mail to one person.
type Message struct {
	// AccountID identifies the recipient in logs. The other fields must not be logged.
	AccountID string
	// To is a bare address.
	To      string
	Subject string
	// Text holds the paragraphs before the link, After the paragraphs that follow it.
	Text  []string
	After []string
	// Link is a secret URL for the recipient to open; it is empty if there is nothing to open. LinkText labels it.
	Link, LinkText string
}
