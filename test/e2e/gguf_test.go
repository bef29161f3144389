//go:build unix

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// The model has one layer of the Llama architecture. Its vocabulary is the 256 bytes.
const (
	ggufWidth = 32
	ggufHeads = 4
	ggufInner = 64
	ggufWords = 3 + 256
)

// gguf writes a model in llama.cpp's file format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
type gguf struct{ bytes.Buffer }

func (g *gguf) put(values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			g.put(uint64(len(s)))
			g.WriteString(s)
			continue
		}
		binary.Write(g, binary.LittleEndian, v)
	}
}

// Types of metadata values.
const (
	ggufUint32  = uint32(4)
	ggufInt32   = uint32(5)
	ggufFloat32 = uint32(6)
	ggufString  = uint32(8)
	ggufArray   = uint32(9)
)

func (g *gguf) list(name string, kind uint32, values []any) {
	g.put(name, ggufArray, kind, uint64(len(values)))
	g.put(values...)
}

// randomModel writes a model with pseudo-random weights, the same in each run.
func randomModel(t *testing.T) (path string) {
	t.Helper()
	const alignment = 32
	tensors := []struct {
		name string
		size []uint64
	}{
		{"token_embd.weight", []uint64{ggufWidth, ggufWords}}, {"output.weight", []uint64{ggufWidth, ggufWords}},
		{"blk.0.attn_q.weight", []uint64{ggufWidth, ggufWidth}}, {"blk.0.attn_k.weight", []uint64{ggufWidth, ggufWidth}},
		{"blk.0.attn_v.weight", []uint64{ggufWidth, ggufWidth}}, {"blk.0.attn_output.weight", []uint64{ggufWidth, ggufWidth}},
		{"blk.0.ffn_gate.weight", []uint64{ggufWidth, ggufInner}}, {"blk.0.ffn_up.weight", []uint64{ggufWidth, ggufInner}},
		{"blk.0.ffn_down.weight", []uint64{ggufInner, ggufWidth}},
		{"output_norm.weight", []uint64{ggufWidth}}, {"blk.0.attn_norm.weight", []uint64{ggufWidth}},
		{"blk.0.ffn_norm.weight", []uint64{ggufWidth}},
	}
	tokens, scores := []any{"<unk>", "<s>", "</s>"}, []any{float32(0), float32(0), float32(0)}
	kinds := []any{int32(2), int32(3), int32(3)} // token types unknown, control, control
	for b := range 256 {
		tokens, scores = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(scores, float32(0))
		kinds = append(kinds, int32(6)) // token type byte
	}
	texts := [][2]string{{"general.architecture", "llama"}, {"general.name", "random"}, {"tokenizer.ggml.model", "llama"}}
	numbers := []struct {
		name string
		n    uint32
	}{
		{"llama.context_length", 512}, {"llama.embedding_length", ggufWidth}, {"llama.block_count", 1},
		{"llama.feed_forward_length", ggufInner}, {"llama.attention.head_count", ggufHeads},
		{"llama.rope.dimension_count", ggufWidth / ggufHeads}, {"llama.vocab_size", ggufWords},
		{"tokenizer.ggml.unknown_token_id", 0}, {"tokenizer.ggml.bos_token_id", 1}, {"tokenizer.ggml.eos_token_id", 2},
	}
	g := &gguf{}
	g.WriteString("GGUF")
	g.put(uint32(3), uint64(len(tensors)), uint64(len(texts)+len(numbers)+4))
	for _, text := range texts {
		g.put(text[0], ggufString, text[1])
	}
	for _, number := range numbers {
		g.put(number.name, ggufUint32, number.n)
	}
	g.put("llama.attention.layer_norm_rms_epsilon", ggufFloat32, float32(1e-5))
	g.list("tokenizer.ggml.tokens", ggufString, tokens)
	g.list("tokenizer.ggml.scores", ggufFloat32, scores)
	g.list("tokenizer.ggml.token_type", ggufInt32, kinds)
	rng, weights := rand.New(rand.NewPCG(1, 2)), &gguf{}
	for _, tensor := range tensors {
		count := uint64(1)
		g.put(tensor.name, uint32(len(tensor.size)))
		for _, n := range tensor.size {
			g.put(n)
			count *= n
		}
		g.put(uint32(0), uint64(weights.Len())) // tensor type: 32-bit floats
		for range count {
			weights.put(float32(rng.NormFloat64()))
		}
		weights.Write(make([]byte, -weights.Len()&(alignment-1)))
	}
	g.Write(make([]byte, -g.Len()&(alignment-1)))
	g.Write(weights.Bytes())
	path = filepath.Join(t.TempDir(), "random.gguf")
	if err := os.WriteFile(path, g.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
