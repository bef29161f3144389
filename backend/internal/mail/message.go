// Package mail sends mail to account holders through the operator's SMTP server, with a bounded queue, one sender, and
// retries after temporary errors. It knows neither accounts nor what a link in a mail does, and logs neither addresses
// nor links.
package mail

// Message is a mail to one person.
type Message struct {
	// AccountID is the only part of the recipient that may be logged.
	AccountID string
	// To is a bare address.
	To      string
	Subject string
	// Text holds the paragraphs before the link, After those that follow it.
	Text  []string
	After []string
	// Link is a secret URL for the person to open; it is empty for a notice. LinkText labels it.
	Link, LinkText string
}
