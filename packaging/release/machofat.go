package main

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"fmt"
	"os"
)

// fatAlign is the alignment of each program in a universal program, as an exponent of two: one page on Apple
// processors.
const fatAlign = 14

// writeFat combines Mach-O programs for several processors into a universal program. macOS runs the part for its
// processor. The signatures that Go's linker added to the parts stay valid.
func writeFat(file string, thin []string) error {
	type part struct{ CPU, SubCPU, Offset, Size, Align uint32 }
	header := struct{ Magic, Count uint32 }{macho.MagicFat, uint32(len(thin))}
	var parts []part
	var programs bytes.Buffer
	offset := uint32(0)
	for _, name := range thin {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		program, err := macho.NewFile(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		offset = (offset + 1<<fatAlign) &^ (1<<fatAlign - 1) // the header is smaller than a page
		parts = append(parts, part{uint32(program.Cpu), program.SubCpu, offset, uint32(len(data)), fatAlign})
		programs.Write(make([]byte, int(offset)-1<<fatAlign-programs.Len()))
		programs.Write(data)
		offset += uint32(len(data))
	}
	var out bytes.Buffer
	for _, value := range []any{header, parts} {
		if err := binary.Write(&out, binary.BigEndian, value); err != nil {
			return err
		}
	}
	out.Write(make([]byte, 1<<fatAlign-out.Len()))
	out.Write(programs.Bytes())
	return os.WriteFile(file, out.Bytes(), 0o755)
}
