package embed

import (
	_ "embed" // the table
	"encoding/binary"
	"errors"
	"math"
)

// dimensions of the static model.
const staticDimensions = 256

// The layout of the table, see potion/README.md.
const (
	tableMagic      = "PGRSTAT1"
	tableVersion    = 1
	tableInt8       = 1
	tableHeaderSize = 64
)

// A string is used in place, where embed.FS would copy all of it to the heap.
//
//go:embed potion/table.i8
var tableFile string

var errTable = errors.New("embed: the built-in table is damaged")

// table holds a vector for every piece of the vocabulary.
type table struct {
	scales []float32
	// rows are the int8 values, staticDimensions a row.
	rows string
}

// readTable checks the header and the size. It does not read the rows: their
// checksum is for a test, since reading all of a binary's pages at start costs
// more than it can find.
func readTable(file string) (*table, error) {
	if len(file) < tableHeaderSize || file[:len(tableMagic)] != tableMagic {
		return nil, errTable
	}
	header := []byte(file[:tableHeaderSize])
	field := func(offset int) int { return int(binary.LittleEndian.Uint32(header[offset:])) }
	rows := field(12)
	if field(8) != tableVersion || field(16) != staticDimensions || field(20) != tableInt8 {
		return nil, errTable
	}
	if len(file) != tableHeaderSize+rows*4+rows*staticDimensions {
		return nil, errTable
	}
	scales := []byte(file[tableHeaderSize : tableHeaderSize+4*rows])
	t := &table{scales: make([]float32, rows), rows: file[tableHeaderSize+4*rows:]}
	for row := range t.scales {
		t.scales[row] = math.Float32frombits(binary.LittleEndian.Uint32(scales[4*row:]))
	}
	return t, nil
}

// int8Values are the values of a table's bytes. Looking them up takes two
// thirds of the time of converting them.
var int8Values = func() (values [256]float32) {
	for i := range values {
		values[i] = float32(int8(i))
	}
	return values
}()

// add adds the row of one piece to sum. Nearly all of an embedding's time is
// spent here, hence eight values a turn, whose bounds are checked once.
func (t *table) add(sum *[staticDimensions]float32, id int32) {
	scale := t.scales[id]
	row := t.rows[int(id)*staticDimensions:][:staticDimensions]
	for i := 0; i < staticDimensions; i += 8 {
		s, r := (*[8]float32)(sum[i:i+8]), row[i:i+8]
		s[0] += scale * int8Values[r[0]]
		s[1] += scale * int8Values[r[1]]
		s[2] += scale * int8Values[r[2]]
		s[3] += scale * int8Values[r[3]]
		s[4] += scale * int8Values[r[4]]
		s[5] += scale * int8Values[r[5]]
		s[6] += scale * int8Values[r[6]]
		s[7] += scale * int8Values[r[7]]
	}
}
