package recall

import "slices"

// Match says which version a change is meant for. A change of something that is at
// another one does not happen: CodePrecondition. A nil Match fits any state.
type Match struct {
	// Any fits every version, but not the absence of one.
	Any bool
	// Versions fit one each; 0 is the absence of a version.
	Versions []int64
}

// check compares with the version that is there.
func (m *Match) check(version int64) error {
	if m == nil || m.Any && version > 0 || slices.Contains(m.Versions, version) {
		return nil
	}
	return errorf(CodePrecondition, "It has changed meanwhile")
}
