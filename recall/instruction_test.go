package recall_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

func TestTheDefaultTemplateIsThatOfTheRecording(t *testing.T) {
	t.Parallel()
	recording, err := os.ReadFile("../server/testdata/mastra-wire.json")
	require.NoError(t, err)
	quoted, err := json.Marshal(recall.DefaultTemplate)
	require.NoError(t, err)
	require.Contains(t, string(recording), `"content": `+string(quoted))
	require.Equal(t, recall.WorkingMemoryTemplate{Format: "markdown", Content: recall.DefaultTemplate}, recall.WorkingMemoryConfig{}.Blank())
	require.Equal(t, recall.WorkingMemoryTemplate{Format: "markdown", Content: "# Mine"}, recall.WorkingMemoryConfig{Template: "\n# Mine \n"}.Blank())
}

func TestTheTemplateOfASchemaHasEachPropertyWithoutAValue(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		personSchema: `{"name":"","age":0,"address":{"city":"","zip":""},"likes":[]}`,
		`{"type":"object","properties":{"a":{"type":"object"},"b":{"type":"boolean"},"c":{"type":"number","default":3},"d":{"anyOf":[]},"e":true}}`: `{"a":{},"b":false,"c":3,"d":null,"e":null}`,
		`{"type":"object","additionalProperties":true}`: `{}`,
		`{}`: `{}`,
	} {
		blank := recall.WorkingMemoryConfig{Schema: json.RawMessage(schema)}.Blank()
		require.Equal(t, recall.WorkingMemoryTemplate{Format: "json", Content: want}, blank, schema)
	}
}

func TestTheInstructionHasTheTextAndItsForm(t *testing.T) {
	t.Parallel()
	markdown := recall.WorkingMemoryConfig{Template: "# Profile\n- Name:"}
	instruction := markdown.Instruction("# Profile\n- Name: Sam")
	require.Contains(t, instruction, "<working_memory>\n# Profile\n- Name: Sam\n</working_memory>")
	require.Contains(t, instruction, "<working_memory_template>\n# Profile\n- Name:\n</working_memory_template>")
	require.Contains(t, instruction, recall.WorkingMemoryToolName)
	require.Contains(t, instruction, "this user")
	require.NotContains(t, markdown.Instruction(""), "<working_memory>")

	person := recall.WorkingMemoryConfig{Scope: recall.ScopeThread, Schema: json.RawMessage(`{"type":"object"}`)}
	instruction = person.Instruction(`{"name":"Sam"}`)
	require.Contains(t, instruction, `{"name":"Sam"}`)
	require.Contains(t, instruction, "<working_memory_schema>\n{\"type\":\"object\"}\n</working_memory_schema>")
	require.Contains(t, instruction, "this conversation")
	require.NotContains(t, instruction, "template")
}

// parameters compiles the parameters of a tool, as a model's interface does.
func parameters(t *testing.T, tool recall.WorkingMemoryTool) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(tool.Parameters)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("tool:parameters", document))
	compiled, err := compiler.Compile("tool:parameters")
	require.NoError(t, err)
	return compiled
}

// takes says whether the parameters admit arguments.
func takes(t *testing.T, schema *jsonschema.Schema, arguments string) bool {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
	require.NoError(t, err)
	return schema.Validate(value) == nil
}

func TestTheToolTakesTheWholeTextWithoutASchema(t *testing.T) {
	t.Parallel()
	tool := recall.WorkingMemoryConfig{}.Tool()
	require.Equal(t, "updateWorkingMemory", tool.Name)
	require.NotEmpty(t, tool.Description)
	schema := parameters(t, tool)
	require.True(t, takes(t, schema, `{"memory":"# Profile"}`))
	for _, bad := range []string{`{}`, `{"memory":{}}`, `{"memory":"x","more":1}`} {
		require.False(t, takes(t, schema, bad), bad)
	}
}

func TestTheToolTakesAnyPartOfADocumentOfTheSchema(t *testing.T) {
	t.Parallel()
	const tree = `{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://example.org/tree","type":"object","required":["name"],
		"properties":{"name":{"$ref":"#/$defs/name"},"child":{"$ref":"#"},"required":{"type":"string"},
			"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}},
			"one":{"anyOf":[{"type":"object","required":["b"],"properties":{"b":{"type":"integer"}}},{"type":"null"}]}},
		"$defs":{"name":{"type":"string"}},"additionalProperties":false}`
	schema := parameters(t, recall.WorkingMemoryConfig{Schema: json.RawMessage(tree)}.Tool())
	for _, good := range []string{
		`{"memory":{}}`, `{"memory":{"name":"a"}}`, `{"memory":{"child":{"child":{"name":"b"}}}}`, `{"memory":{"required":"c"}}`,
		`{"memory":{"list":[{"a":"d"}]}}`, `{"memory":{"one":{}}}`, `{"memory":{"one":null}}`,
	} {
		require.True(t, takes(t, schema, good), good)
	}
	for _, bad := range []string{
		`{}`, `{"memory":"x"}`, `{"memory":{"name":1}}`, `{"memory":{"child":{"child":{"name":1}}}}`, `{"memory":{"other":1}}`,
		`{"memory":{"list":[{}]}}`, `{"memory":{"one":{"b":"x"}}}`,
	} {
		require.False(t, takes(t, schema, bad), bad)
	}
}
