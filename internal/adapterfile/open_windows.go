package adapterfile

import "os"

func openProgram(path string) (*os.File, error) { return os.Open(path) }
