package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	// minPostgres is the oldest major version the product supports.
	minPostgres = 15
	// defaultPostgres is the major version taken when any may be.
	defaultPostgres = 18
)

// minVector is the oldest pgvector with iterative index scans, which recall needs.
var minVector = version{0, 8, 0}

// version is major, minor and patch; parts not given are 0.
type version [3]int

var versionShape = regexp.MustCompile(`(\d+)(?:\.(\d+))?(?:\.(\d+))?`)

// parseVersion takes the first version in a text such as "postgres (PostgreSQL) 15.18 (Debian 15.18-0)",
// "18beta1" or "0.8.5".
func parseVersion(text string) (version, error) {
	parts := versionShape.FindStringSubmatch(text)
	if parts == nil {
		return version{}, fmt.Errorf("no version in %q", strings.TrimSpace(text))
	}
	var v version
	for i := range v {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return version{}, fmt.Errorf("version in %q: %w", strings.TrimSpace(text), err)
		}
		v[i] = n
	}
	return v, nil
}

// less compares part by part.
func (v version) less(other version) bool {
	for i := range v {
		if v[i] != other[i] {
			return v[i] < other[i]
		}
	}
	return false
}

// String writes all three parts for pgvector's 0.8.5 and two for Postgres' 18.4.
func (v version) String() string {
	if v[2] == 0 && v[0] > 0 {
		return fmt.Sprintf("%d.%d", v[0], v[1])
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}

var defaultVersionLine = regexp.MustCompile(`(?m)^\s*default_version\s*=\s*'([^']*)'`)

// controlVersion reads default_version from the text of an extension's control file.
func controlVersion(control string) (version, error) {
	line := defaultVersionLine.FindStringSubmatch(control)
	if line == nil {
		return version{}, fmt.Errorf("no default_version in the control file")
	}
	return parseVersion(line[1])
}
