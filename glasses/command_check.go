package glasses

import (
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

func (p *Say) check() *Error {
	if n := utf8.RuneCountInString(p.Text); n == 0 || n > MaxSay {
		return badPayload("text must be 1 to %[2]d characters long, not %[1]d", n, MaxSay)
	}
	return checkLanguage(p.Language)
}

// languageTag matches well-formed language tags (RFC 5646, section 2.1). It does not check whether subtags are
// registered.
var languageTag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$`)
})

func checkLanguage(tag string) *Error {
	if tag != "" && (!validWord(tag, 35) || !languageTag().MatchString(tag)) {
		return badPayload("language must be a BCP 47 tag")
	}
	return nil
}

func (p *Play) check() *Error {
	if !slices.Contains(Sounds(), p.Sound) {
		return badPayload("sound must be one of %v", Sounds())
	}
	return nil
}

func (p *PlaybackStart) check() *Error {
	if p.SampleRate == 0 {
		p.SampleRate = 24000
	}
	if p.SampleRate != 16000 && p.SampleRate != 24000 {
		return badPayload("sampleRate must be 16000 or 24000")
	}
	return nil
}

func (p *AudioStart) check() *Error {
	if p.SampleRate == 0 {
		p.SampleRate = 16000
	}
	if p.SampleRate != 8000 && p.SampleRate != 16000 {
		return badPayload("sampleRate must be 8000 or 16000")
	}
	return nil
}

func (p *TranscriptionStart) check() *Error { return checkLanguage(p.Language) }

func (p *VideoStart) check() *Error { return checkVideo(&p.FPS, &p.Width) }

func checkVideo(fps, width *int) *Error {
	if err := within("fps", fps, 5, 1, 30); err != nil {
		return err
	}
	return within("width", width, 640, 64, 1280)
}

func (p *MotionStart) check() *Error { return within("hz", &p.Hz, 10, 1, 100) }

func (p *Photo) check() *Error { return within("width", &p.Width, 1280, 64, 4032) }

func (p *Video) check() *Error {
	if p.DurationMs < 100 || p.DurationMs > MaxVideo {
		return badPayload("durationMs must be from 100 to %[2]d, not %[1]d", p.DurationMs, MaxVideo)
	}
	return checkVideo(&p.FPS, &p.Width)
}

func (p *Announce) check() *Error {
	if len(p.Phrases) > MaxPhrases {
		return badPayload("phrases lists %d phrases, over the limit of %d", len(p.Phrases), MaxPhrases)
	}
	for _, phrase := range p.Phrases {
		if n := utf8.RuneCountInString(phrase); n == 0 || n > 100 {
			return badPayload("a phrase must be 1 to 100 characters long, not %d", n)
		}
	}
	return nil
}

func (p *Sleep) check() *Error {
	if p.Ms < 0 || p.Ms > MaxSleep {
		return badPayload("ms must be from 0 to %[2]d, not %[1]d", p.Ms, MaxSleep)
	}
	return nil
}

func (p *Cancel) check() *Error {
	if !validWord(p.ID, MaxID) {
		return badPayload("id must be 1 to %d printable ASCII characters without spaces", MaxID)
	}
	return nil
}

// within sets a zero value to its default and checks its bounds.
func within(name string, v *int, def, low, high int) *Error {
	if *v == 0 {
		*v = def
	}
	if *v < low || *v > high {
		return badPayload("%[1]s must be from %[3]d to %[4]d, not %[2]d", name, *v, low, high)
	}
	return nil
}
