package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/jpeg"
	"time"

	"github.com/service-dev/service/glasses"
)

const (
	sampleRate = 16000
	chunkBytes = sampleRate / 10 * 2    // 100 ms of 16-bit sound
	videoWidth = 320                    // pixels
	streamTime = 5 * time.Second        // within which a started stream must send its first frame
	quietTime  = 500 * time.Millisecond // how long to check that a stopped stream sends no more frames
)

// streamRules returns the rules for the streams of a model.
func streamRules(m glasses.DeviceModel) (list []rule) {
	if m.Microphone {
		list = append(list, rule{"audio.start sends sound in chunks of 100 ms", binarySection, soundIsSent},
			rule{"a second audio.start is busy", errorSection, secondStream},
			rule{"after audio.stop there is no more sound", commandSection,
				ends(glasses.TypeAudioStop, glasses.TypeAudioChunk)})
	}
	if m.Speaker {
		list = append(list, rule{"a playback ends with an event, or is unsupported", eventSection, playbackEnds})
	}
	if m.Camera != nil {
		list = append(list, rule{"video.start sends pictures", binarySection, videoIsSent},
			rule{"after video.stop there are no more pictures", commandSection,
				ends(glasses.TypeVideoStop, glasses.TypeVideoFrame)})
	}
	if m.Motion {
		list = append(list, rule{"motion.start sends what the sensors measure", eventSection, motionIsSent},
			rule{"after motion.stop there is no more motion", commandSection,
				ends(glasses.TypeMotionStop, glasses.TypeMotion)})
	}
	return list
}

// wantStream starts a stream and checks its first two frames.
func (c *checker) wantStream(ctx context.Context, start string, payload any, frame string,
	check func(received) error) error {
	_, before, err := c.wantOK(ctx, start, payload)
	limit := time.After(streamTime)
	for n := 0; err == nil && n < 2; {
		var r received
		ok := true
		if len(before) > 0 {
			r, before = before[0], before[1:]
		} else {
			r, ok, err = c.receive(ctx, limit)
		}
		switch {
		case err != nil || ok && r.Type != frame:
		case !ok:
			err = fmt.Errorf("%s returned ok, but %d %s arrived within %v, want 2", start, n, frame, streamTime)
		default:
			err = check(r)
			n++
		}
	}
	return err
}

// ends returns a check that a stream sends no more frames after the result of its stop command.
func ends(stop, frame string) func(context.Context, *checker) error {
	return func(ctx context.Context, c *checker) error {
		if _, _, err := c.wantOK(ctx, stop, struct{}{}); err != nil {
			return err
		}
		limit := time.After(quietTime)
		for {
			r, ok, err := c.receive(ctx, limit)
			switch {
			case err != nil || !ok:
				return err
			case r.Type == frame:
				return fmt.Errorf("a frame of type %s arrived after the result of %s", frame, stop)
			}
		}
	}
}

func soundIsSent(ctx context.Context, c *checker) error {
	start := glasses.AudioStart{SampleRate: sampleRate}
	return c.wantStream(ctx, glasses.TypeAudioStart, start, glasses.TypeAudioChunk, func(r received) error {
		var header glasses.AudioStart
		switch {
		case len(r.body) != chunkBytes:
			return fmt.Errorf("an audio.chunk is %d bytes long, want %d for 100 ms", len(r.body), chunkBytes)
		case json.Unmarshal(r.Payload, &header) != nil || header.SampleRate != sampleRate:
			return fmt.Errorf("the header of an audio.chunk has sampleRate %d, want %d", header.SampleRate, sampleRate)
		}
		return nil
	})
}

func secondStream(ctx context.Context, c *checker) error {
	return c.wantRefusal(ctx, glasses.TypeAudioStart, struct{}{}, glasses.CodeBusy)
}

// playbackEnds plays no sound, whose only event is finished. Programs that are older than playback may refuse it.
func playbackEnds(ctx context.Context, c *checker) error {
	id, err := c.send(ctx, glasses.TypePlaybackStart, glasses.PlaybackStart{SampleRate: sampleRate})
	if err != nil {
		return err
	}
	r, _, err := c.await(ctx, id)
	switch {
	case err != nil || r.Error != nil && r.Error.Code == glasses.CodeUnsupported:
		return err
	case r.Error != nil:
		return fmt.Errorf("playback.start returned %s, want ok or unsupported", outcome(r))
	}
	_, before, err := c.wantOK(ctx, glasses.TypePlaybackEnd, struct{}{})
	limit := time.After(streamTime)
	for err == nil {
		var r received
		ok := true
		if len(before) > 0 {
			r, before = before[0], before[1:]
		} else {
			r, ok, err = c.receive(ctx, limit)
		}
		got, want := glasses.PlaybackState{}, glasses.PlaybackState{ID: id, State: glasses.PlaybackFinished}
		switch {
		case err != nil || ok && r.Type != glasses.TypePlayback:
		case !ok:
			err = fmt.Errorf("no playback event arrived within %v of the result of playback.end", streamTime)
		case json.Unmarshal(r.Payload, &got) != nil || got != want:
			return fmt.Errorf("a playback without sound ended with %s, want state finished and playedMs 0", r.Payload)
		default:
			return nil
		}
	}
	return err
}

func videoIsSent(ctx context.Context, c *checker) error {
	start := glasses.VideoStart{FPS: 5, Width: videoWidth}
	return c.wantStream(ctx, glasses.TypeVideoStart, start, glasses.TypeVideoFrame, func(r received) error {
		picture, err := jpeg.DecodeConfig(bytes.NewReader(r.body))
		if err != nil {
			return fmt.Errorf("a video.frame is not a JPEG: %w", err)
		}
		var header struct{ Width, Height int }
		if json.Unmarshal(r.Payload, &header) != nil || header.Width != picture.Width || header.Height != picture.Height {
			return fmt.Errorf("the header of a video.frame declares %d x %d pixels, but its picture is %d x %d", header.Width,
				header.Height, picture.Width, picture.Height)
		}
		if err := checkPicture(r.body); err != nil {
			return fmt.Errorf("the picture of a video.frame %w", err)
		}
		return nil
	})
}

func motionIsSent(ctx context.Context, c *checker) error {
	start := glasses.MotionStart{Hz: 10}
	return c.wantStream(ctx, glasses.TypeMotionStart, start, glasses.TypeMotion, func(r received) error {
		var fields map[string]int
		err := json.Unmarshal(r.Payload, &fields)
		for _, axis := range []string{"ax", "ay", "az", "gx", "gy", "gz"} {
			if _, ok := fields[axis]; err != nil || !ok {
				return errors.New("a motion event lacks " + axis + " or contains a value that is not an integer")
			}
		}
		return nil
	})
}
