package main

import (
	"encoding/json"
	"fmt"
)

// print writes a command's result, as text or as one line of JSON.
func (s outputSettings) print(term terminal, text string, result map[string]any) error {
	if !s.JSON {
		_, err := fmt.Fprintln(term.out, text)
		return err
	}
	return json.NewEncoder(term.out).Encode(result)
}
