package recall

// Limits bounds what a request may carry. To change one, start from
// [DefaultLimits].
type Limits struct {
	// IDBytes bounds every id and role, type and cursor.
	IDBytes int
	// TitleBytes bounds a thread's title.
	TitleBytes int
	// ContentBytes bounds one message's content; MetadataBytes a thread's metadata.
	ContentBytes  int
	MetadataBytes int
	// WorkingMemoryBytes bounds a working memory.
	WorkingMemoryBytes int
	// JSONDepth bounds the nesting of content, metadata and filters.
	JSONDepth int
	// Messages bounds the messages of one save, update or delete.
	Messages int
	// PerPage bounds a page's size, Page its number.
	PerPage int
	Page    int
	// IncludeItems bounds the items of include, ContextWidth the messages before
	// or after one of them.
	IncludeItems int
	ContextWidth int
	// QuestionBytes bounds the question of a search, TopK its hits.
	QuestionBytes int
	TopK          int
	// MetadataPairs bounds the pairs of filter.metadata, WhereOperators the
	// comparisons and alternatives of filter.where.
	MetadataPairs  int
	WhereOperators int
}

// DefaultLimits are the limits that the server starts with.
func DefaultLimits() Limits {
	return Limits{
		IDBytes:            512,
		TitleBytes:         4096,
		ContentBytes:       4 << 20,
		MetadataBytes:      64 << 10,
		WorkingMemoryBytes: 64 << 10,
		JSONDepth:          64,
		Messages:           1000,
		PerPage:            1000,
		Page:               1_000_000,
		IncludeItems:       200,
		ContextWidth:       200,
		QuestionBytes:      32 << 10,
		TopK:               200,
		MetadataPairs:      32,
		WhereOperators:     64,
	}
}
