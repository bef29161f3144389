package guide

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
)

// Recommended limits for phrases, stricter than the limits of phrases.announce.
const (
	MinPhraseLetters = 5  // letters, without spaces
	MaxPhraseWords   = 6  // words
	ManyPhrases      = 12 // phrases that a user can remember
	maxPhraseChars   = 100
)

// WakeWords returns the words that activate assistants on phones and glasses, in lower case. If a phrase contains such
// a word, the assistant is activated and the app does not receive the phrase.
func WakeWords() []string {
	return []string{"hey meta", "hey facebook", "hey google", "ok google", "okay google", "hey siri", "siri", "alexa",
		"hey even", "hey copilot", "hey bixby", "hi bixby", "hey cortana"}
}

// Codes of a PhraseProblem. The glasses refuse phrases with the first two problems, and often fail to recognise phrases
// with the others.
const (
	PhraseTooLong   = "too_long"
	PhraseTooMany   = "too_many"
	PhraseWakeWord  = "wake_word"
	PhraseTooShort  = "too_short"
	PhraseManyWords = "many_words"
	PhraseSame      = "same"
	PhraseAlike     = "alike"
	PhraseBeginning = "beginning"
	PhraseSymbols   = "symbols"
)

// PhraseProblem is a problem with a phrase, or with the whole list if Phrase is empty.
type PhraseProblem struct {
	Phrase  string `json:"phrase"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// CheckPhrases returns the problems that phrases would have in practice.
func CheckPhrases(phrases []string) []PhraseProblem {
	var found []PhraseProblem
	if len(phrases) > glasses.MaxPhrases {
		found = append(found, PhraseProblem{Code: PhraseTooMany,
			Message: fmt.Sprintf("%d phrases; %s accepts at most %d", len(phrases), glasses.TypePhrasesAnnounce,
				glasses.MaxPhrases),
			Fix: "Announce only those that fit the current screen."})
		phrases = phrases[:glasses.MaxPhrases]
	}
	for _, phrase := range phrases {
		found = append(found, checkPhrase(phrase)...)
	}
	return append(found, checkPairs(phrases)...)
}

func checkPhrase(phrase string) []PhraseProblem {
	var found []PhraseProblem
	say := func(code, fix, format string, args ...any) {
		found = append(found, PhraseProblem{Phrase: phrase, Code: code, Message: fmt.Sprintf(format, args...),
			Fix: fix})
	}
	words := spoken(phrase)
	letters := utf8.RuneCountInString(strings.Join(words, ""))
	if n := utf8.RuneCountInString(phrase); n > maxPhraseChars {
		say(PhraseTooLong, "Shorten it.", "it has %d characters, the limit is %d", n, maxPhraseChars)
	}
	if wake := wakeWordIn(words); wake != "" {
		say(PhraseWakeWord, "Use another word.",
			"it contains %q, which wakes an assistant before the app hears anything", wake)
	}
	if letters < MinPhraseLetters {
		say(PhraseTooShort, "Use two words, e.g. a verb and its object.",
			"with %d letters it is easily mistaken for other speech", letters)
	}
	if len(words) > MaxPhraseWords {
		say(PhraseManyWords, "Use two to four words.", "people rarely repeat %d words in the same way", len(words))
	}
	if strings.ContainsFunc(phrase, func(r rune) bool { return unicode.IsDigit(r) || unicode.IsSymbol(r) }) {
		say(PhraseSymbols, "Write it as it is spoken.", "recognisers transcribe digits and symbols in different ways")
	}
	return found
}

func checkPairs(phrases []string) []PhraseProblem {
	var found []PhraseProblem
	for i, a := range phrases {
		for _, b := range phrases[:i] {
			if code, message := clash(strings.Join(spoken(b), " "), strings.Join(spoken(a), " ")); code != "" {
				found = append(found, PhraseProblem{Phrase: a, Code: code, Message: fmt.Sprintf("%s %q", message, b),
					Fix: "Choose phrases that begin and sound different."})
			}
		}
	}
	return found
}

func clash(a, b string) (code, message string) {
	switch {
	case a == b:
		return PhraseSame, "it sounds the same as"
	case strings.HasPrefix(a, b+" "), strings.HasPrefix(b, a+" "):
		return PhraseBeginning, "one is the beginning of the other:"
	case EditDistance([]rune(a), []rune(b))*4 <= min(utf8.RuneCountInString(a), utf8.RuneCountInString(b)):
		return PhraseAlike, "it is easily mistaken for"
	}
	return "", ""
}

// spoken returns the words of a phrase as spoken, in lower case and without punctuation.
func spoken(phrase string) []string {
	return strings.FieldsFunc(strings.ToLower(phrase), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	})
}

func wakeWordIn(words []string) string {
	said := " " + strings.Join(words, " ") + " "
	for _, wake := range WakeWords() {
		if strings.Contains(said, " "+wake+" ") {
			return wake
		}
	}
	return ""
}

// EditDistance returns the Levenshtein distance between a and b. It has no upper bound, because phrases and names are
// short.
func EditDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			cost := diagonal
			if x != y {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
