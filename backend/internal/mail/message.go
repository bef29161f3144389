// Package mail sends mail to account holders through the operator's SMTP server. It has a bounded queue and a single
// sender, and retries after temporary errors. It does not interpret accounts or links, and logs neither addresses nor
// links.
package mail

// Message is a mail to one recipient.
type Message struct {
	// AccountID identifies the recipient in logs. The other fields must not be logged.
	AccountID string
	// To is a bare address.
	To      string
	Subject string
	// Text holds the paragraphs before the link; After holds the paragraphs that follow it.
	Text  []string
	After []string
	// Link is a secret URL for the recipient to open, or empty. LinkText is its label.
	Link, LinkText string
}
