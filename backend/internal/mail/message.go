// Package mail sends the account's mail over the operator's SMTP server: a bounded queue, one sender, patience with
// temporary errors. It knows neither accounts nor what a link in a mail does, and logs neither addresses nor links.
package mail

// Message is one mail to one person.
type Message struct {
	// AccountID is all that a log may say of the recipient.
	AccountID string
	// To is one bare address.
	To      string
	Subject string
	// Text are the paragraphs before the link, After those behind it.
	Text  []string
	After []string
	// Link is a secret address that the person opens; empty for a notice. LinkText names it.
	Link, LinkText string
}
