// Writes controller/apiserver/protobuf/*.proto from the struct tags of Kubernetes' Go types:
//
//	cd tests/clients/go && go run ./protos ../../../controller/apiserver/protobuf
//
// The files hold names and numbers only. Run it after a change of the Kubernetes version in go.mod
// or of the kinds in kinds.go, together with ./vectors.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tahoma.dev/tests/clients/go/kinds"
)

// Types whose JSON is not that of their fields; what their protobuf holds is written by hand.
var special = map[string]string{
	"k8s.io.apimachinery.pkg.api.resource.Quantity":   "  string string = 1;\n",
	"k8s.io.apimachinery.pkg.util.intstr.IntOrString": "  int64 type = 1;\n  int32 intVal = 2;\n  string strVal = 3;\n",
	"k8s.io.apimachinery.pkg.apis.meta.v1.Time":       "  int64 seconds = 1;\n  int32 nanos = 2;\n",
	"k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime":  "  int64 seconds = 1;\n  int32 nanos = 2;\n",
	"k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1":   "  optional bytes Raw = 1;\n",
	"k8s.io.apimachinery.pkg.runtime.RawExtension":    "  optional bytes raw = 1;\n",
}

type writer struct {
	messages map[string]map[string]string // package -> message -> text
	imports  map[string]map[string]bool
}

func packageOf(t reflect.Type) string {
	return strings.NewReplacer("/", ".", "-", "_").Replace(t.PkgPath())
}

func fileOf(pkg string) string {
	parts := strings.Split(pkg, ".")
	return strings.Join(parts[len(parts)-2:], "_") + ".proto"
}

// name adds the message of a struct, or of a named list, and returns its full name.
func (w *writer) name(t reflect.Type, from string) string {
	pkg := packageOf(t)
	if pkg != from && from != "" {
		if w.imports[from] == nil {
			w.imports[from] = map[string]bool{}
		}
		w.imports[from][fileOf(pkg)] = true
	}
	full := pkg + "." + t.Name()
	if w.messages[pkg] == nil {
		w.messages[pkg] = map[string]string{}
	}
	if _, known := w.messages[pkg][t.Name()]; known {
		return full
	}
	w.messages[pkg][t.Name()] = "" // ends recursion
	body, isSpecial := special[full]
	if t.Kind() == reflect.Slice {
		body = fmt.Sprintf("  repeated %s items = 1;\n", w.scalar(t.Elem(), pkg))
	} else if !isSpecial {
		body = w.fields(t, pkg)
	}
	w.messages[pkg][t.Name()] = body
	return full
}

func (w *writer) scalar(t reflect.Type, pkg string) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32:
		return "int32"
	case reflect.Int64:
		return "int64"
	case reflect.Float64:
		return "double"
	case reflect.Struct:
		return w.name(t, pkg)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Name() != "" {
			return w.name(t, pkg)
		}
	}
	panic("no protobuf for " + t.String())
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

type line struct {
	number int
	text   string
}

func (w *writer) fields(t reflect.Type, pkg string) string {
	var lines []line
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil {
			panic(err)
		}
		lines = append(lines, line{number, w.field(field, tag, number, pkg)})
	}
	slices.SortFunc(lines, func(a, b line) int { return a.number - b.number })
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text)
	}
	return text.String()
}

func (w *writer) field(field reflect.StructField, tag []string, number int, pkg string) string {
	json := strings.Split(field.Tag.Get("json"), ",")
	wire := json[0]
	for _, part := range tag {
		if name, found := strings.CutPrefix(part, "name="); found {
			wire = name
		}
	}
	if wire == "" || wire == "-" {
		wire = strings.ToLower(field.Name[:1]) + field.Name[1:]
	}
	var options []string
	inline := slices.Contains(json[1:], "inline")
	if inline {
		options = append(options, "(tahoma.inline) = true")
	} else if json[0] != wire && json[0] != "-" && json[0] != "" {
		options = append(options, fmt.Sprintf("json_name = %q", json[0]))
	}
	of := field.Type
	label := ""
	pointer := of.Kind() == reflect.Pointer
	if pointer {
		of = of.Elem()
	}
	isStruct := of.Kind() == reflect.Struct && !pointer
	switch {
	case of.Kind() == reflect.Map:
		label = fmt.Sprintf("map<%s, %s>", w.scalar(of.Key(), pkg), w.scalar(of.Elem(), pkg))
	case of.Kind() == reflect.Slice && of.Name() == "" && !isBytes(of):
		element := of.Elem()
		if element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		label = "repeated " + w.scalar(element, pkg)
	case of.Kind() == reflect.Slice && !isBytes(of) && !pointer && slices.Contains(tag, "rep"):
		label = "repeated " + w.scalar(of.Elem(), pkg) // a named type, such as FinalizerList
	case (pointer && of.Kind() != reflect.Struct) || isBytes(of):
		label = "optional " + w.scalar(of, pkg)
	default:
		label = w.scalar(of, pkg)
	}
	if isStruct && !inline {
		options = append(options, "(tahoma.always) = true")
	}
	omitted := slices.Contains(json[1:], "omitempty") && !isStruct || slices.Contains(json[1:], "omitzero")
	if !inline && !omitted && json[0] != "-" {
		options = append(options, "(tahoma.kept) = true")
	}
	suffix := ""
	if len(options) > 0 {
		suffix = " [" + strings.Join(options, ", ") + "]"
	}
	return fmt.Sprintf("  %s %s = %d%s;\n", strings.ReplaceAll(label, pkg+".", ""), wire, number, suffix)
}

const head = `// The wire contract of Kubernetes %s: names and numbers of fields, written by
// tests/clients/go/protos from the struct tags of its Go types. See README.md.
syntax = "proto3";
package %s;
`

func main() {
	w := writer{map[string]map[string]string{}, map[string]map[string]bool{}}
	for _, object := range kinds.Objects() {
		w.name(reflect.TypeOf(object).Elem(), "")
	}
	for _, part := range kinds.Parts() {
		w.name(reflect.TypeOf(part), "")
	}
	for pkg, messages := range w.messages {
		var text strings.Builder
		fmt.Fprintf(&text, head, kinds.Version(), pkg)
		imports := []string{}
		if strings.Contains(fmt.Sprint(messages), "(tahoma.") {
			imports = append(imports, "go_json.proto")
		}
		for file := range w.imports[pkg] {
			imports = append(imports, file)
		}
		slices.Sort(imports)
		for _, file := range imports {
			fmt.Fprintf(&text, "import %q;\n", file)
		}
		names := []string{}
		for name := range messages {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&text, "\nmessage %s {\n%s}\n", name, messages[name])
		}
		path := filepath.Join(os.Args[1], fileOf(pkg))
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			panic(err)
		}
	}
}
