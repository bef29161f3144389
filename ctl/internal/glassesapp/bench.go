package glassesapp

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// pictureTime is the timeout for showing one picture. Glasses answer within 10 s.
const pictureTime = 15 * time.Second

// sampleRate is the microphone's sample rate in a bench, in Hz.
const sampleRate = 16000

// noise returns a picture of random squares, so that two pictures of a bench have little in common.
func noise(m glasses.DeviceModel, seed uint64) *image.Gray {
	const side = 8
	random := rand.New(rand.NewPCG(seed, 0))
	img := image.NewGray(image.Rectangle{Max: render.Area(m).Size()})
	for y := 0; y < img.Rect.Dy(); y += side {
		for x := 0; x < img.Rect.Dx(); x += side {
			level := image.NewUniform(color.Gray{Y: uint8(random.IntN(2) * 0xFF)})
			draw.Draw(img, image.Rect(x, y, x+side, y+side), level, image.Point{}, draw.Src)
		}
	}
	return img
}

// Pictures shows full pictures one after another and measures each. It returns an error if ctx ends or the connection
// is lost.
func (a *App) Pictures(ctx context.Context, number int, progress func(shown int)) (RecordPictures, error) {
	b := RecordPictures{Asked: number, Ms: []int64{}}
	for i := range number {
		progress(i)
		show, err := Picture(noise(a.Welcome.DeviceModel, uint64(i)), "bench picture")
		if err != nil {
			return b, err
		}
		begin := time.Now()
		if refused, err := a.show(ctx, show); err != nil {
			return b, err
		} else if refused != "" {
			b.Error = refused
			continue
		}
		b.Ms = append(b.Ms, time.Since(begin).Milliseconds())
	}
	if sorted := slices.Sorted(slices.Values(b.Ms)); len(sorted) > 0 {
		last := len(sorted) - 1
		b.LeastMs, b.MostMs = sorted[0], sorted[last]
		b.MedianMs = (sorted[last/2] + sorted[(last+1)/2]) / 2
	}
	return b, nil
}

func (a *App) show(ctx context.Context, show glasses.Show) (refused string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	_, err = a.Command(ctx, glasses.TypeDisplayShow, show)
	return refusalOf(err)
}

// refusalOf returns the code of a refusal by the glasses, or err if it is another error.
func refusalOf(err error) (refused string, other error) {
	var r *glasses.Error
	if errors.As(err, &r) {
		return r.Code + ": " + r.Message, nil
	}
	return "", err
}

// Inputs waits for number inputs. It returns the inputs received by then, or until ctx ended.
func (a *App) Inputs(ctx context.Context, number int) []string {
	seen := []string{}
	for len(seen) < number {
		e, ok := a.next(ctx, glasses.TypeInput)
		var input glasses.Input
		if !ok {
			break
		}
		if json.Unmarshal(e.Payload, &input) == nil {
			seen = append(seen, strings.TrimSpace(input.Kind+" "+input.Side))
		}
	}
	return seen
}

// next waits for the next event of a type and drops all others. ok is false if ctx or the connection ends.
func (a *App) next(ctx context.Context, typ string) (e Event, ok bool) {
	for {
		select {
		case e, ok = <-a.Events:
			if !ok || e.Type == typ {
				return e, ok
			}
		case <-ctx.Done():
			return e, false
		}
	}
}

// Microphone records for listen and measures the loudness.
func (a *App) Microphone(ctx context.Context, listen time.Duration) (b RecordMicrophone, err error) {
	limit, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	_, err = a.Command(limit, glasses.TypeAudioStart, glasses.AudioStart{SampleRate: sampleRate})
	if b.Error, err = refusalOf(err); err != nil || b.Error != "" {
		return b, err
	}
	begin := time.Now()
	listening, stop := context.WithTimeout(ctx, listen)
	defer stop()
	samples, sum, peak := 0, 0.0, 0.0
	for e, ok := a.next(listening, glasses.TypeAudioChunk); ok; e, ok = a.next(listening, glasses.TypeAudioChunk) {
		b.Chunks++
		for at := 0; at+1 < len(e.Body); at += 2 {
			level := float64(int16(binary.LittleEndian.Uint16(e.Body[at:]))) / -math.MinInt16
			samples, sum, peak = samples+1, sum+level*level, max(peak, math.Abs(level))
		}
	}
	b.ListenMs = time.Since(begin).Milliseconds()
	b.LevelDB, b.PeakDB = decibels(math.Sqrt(sum/float64(max(samples, 1)))), decibels(peak)
	_, err = a.Command(limit, glasses.TypeAudioStop, struct{}{})
	b.Error, err = refusalOf(err)
	return b, err
}

// decibels converts a level to dB of full scale, rounded to tenths. Silence is -100.
func decibels(level float64) float64 {
	return math.Round(max(20*math.Log10(max(level, 1e-5)), -100)*10) / 10
}

// Break waits until the connection of the glasses breaks and is fully restored, or until ctx ends. It calls changed
// when the connection breaks.
func (a *App) Break(ctx context.Context, changed func(state string)) (b RecordReconnect) {
	var begin time.Time
	for {
		e, ok := a.next(ctx, glasses.TypeLink)
		if !ok {
			return b
		}
		var link glasses.LinkState
		switch err := json.Unmarshal(e.Payload, &link); {
		case err != nil:
		case link.State == glasses.LinkConnected && b.State != "":
			b.AwayMs = max(time.Since(begin).Milliseconds(), 1)
			return b
		case link.State != glasses.LinkConnected:
			if b.State == "" {
				begin = time.Now()
			}
			b.State = link.State
			changed(link.State)
		}
	}
}
