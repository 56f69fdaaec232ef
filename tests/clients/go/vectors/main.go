// Writes golden vectors of Kubernetes' protobuf, made by its own Go types:
//
//	cd tests/clients/go && go run ./vectors ../../golden/protobuf
//
// One file for each kind; a line is {"json": …, "protobuf": "<base64>"} of one object: the empty one,
// then objects filled from a fixed seed. Both are of the object as it comes out of protobuf.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"tahoma.dev/tests/clients/go/kinds"
)

const (
	seed       = 16
	filledMost = 5
	bytesMost  = 12 << 10 // of an object's protobuf: larger ones are left out
)

var texts = []string{"", "a", "main", "v1", "Ünïcödé-鈴", "quote\" back\\slash\nline <&>", "x.example.com/y"}

func text(r *rand.Rand) string { return texts[r.Intn(len(texts))] }

func fillers() []any {
	anyJSON := []string{`{"a":[1,"b",null]}`, `"text"`, `7`, `true`, `{}`}
	return []any{
		func(s *string, c randfill.Continue) { *s = text(c.Rand) },
		func(n *int64, c randfill.Continue) { *n = []int64{0, 1, -1, 300, 1 << 40, -(1 << 62)}[c.Intn(6)] },
		func(n *int32, c randfill.Continue) { *n = []int32{0, 1, -1, 300, 1 << 30}[c.Intn(5)] },
		func(f *float64, c randfill.Continue) { *f = []float64{0, 1, -2.5, 1e-9, 1e15}[c.Intn(5)] },
		func(b *[]byte, c randfill.Continue) { *b = []byte(text(c.Rand)) },
		func(t *meta.Time, c randfill.Continue) {
			*t = meta.Unix([]int64{0, 1, 1792580400, -5, 253402300799}[c.Intn(5)], 0)
		},
		func(t *meta.MicroTime, c randfill.Continue) {
			*t = meta.NewMicroTime(time.Unix(int64(c.Intn(1<<31)), int64(c.Intn(1e6))*1000))
		},
		func(d *meta.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Intn(1e6)) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "1", "250m", "3Gi", "1500", "1e3", "-2", "96Gi"}[c.Intn(8)])
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if c.Bool() {
				*i = intstr.FromInt32(int32(c.Intn(65536)))
			} else {
				*i = intstr.FromString(text(c.Rand))
			}
		},
		func(f *meta.FieldsV1, c randfill.Continue) { f.SetRawString(`{"f:spec":{".":{},"f:a":{}}}`) },
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(anyJSON[c.Intn(len(anyJSON))]) },
		func(j *apiextensions.JSON, c randfill.Continue) { j.Raw = []byte(anyJSON[c.Intn(len(anyJSON))]) },
		func(s *apiextensions.JSONSchemaPropsOrBool, c randfill.Continue) {
			if s.Allows = c.Bool(); s.Allows && c.Bool() {
				c.Fill(&s.Schema)
			}
		},
		func(s *apiextensions.JSONSchemaPropsOrArray, c randfill.Continue) {
			if c.Bool() {
				s.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
			} else {
				s.JSONSchemas = []apiextensions.JSONSchemaProps{{Type: "string"}, {Type: "integer"}}
			}
		},
		func(s *apiextensions.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if c.Bool() {
				s.Schema = &apiextensions.JSONSchemaProps{Type: "string"}
			} else {
				s.Property = []string{"a", "b"}
			}
		},
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// through returns the object as it comes out of JSON and then out of protobuf, and its bytes.
func through(serializer *protobuf.Serializer, object runtime.Object) (runtime.Object, []byte) {
	gvk := object.GetObjectKind().GroupVersionKind()
	fresh := func() runtime.Object { return reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object) }
	fromJSON := fresh()
	if err := json.Unmarshal(must(json.Marshal(object)), fromJSON); err != nil {
		panic(err)
	}
	fromJSON.GetObjectKind().SetGroupVersionKind(gvk)
	var encoded bytes.Buffer
	if err := serializer.Encode(fromJSON, &encoded); err != nil {
		panic(err)
	}
	decoded := fresh()
	must2(serializer.Decode(encoded.Bytes(), &gvk, decoded))
	decoded.GetObjectKind().SetGroupVersionKind(gvk)
	encoded = bytes.Buffer{}
	if err := serializer.Encode(decoded, &encoded); err != nil {
		panic(err)
	}
	return decoded, encoded.Bytes()
}

func must2(_, _ any, err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	scheme := kinds.Scheme()
	serializer := protobuf.NewSerializer(scheme, scheme)
	for _, empty := range kinds.Objects() {
		gvks, _, err := scheme.ObjectKinds(empty)
		if err != nil {
			panic(err)
		}
		gvk := gvks[0]
		for _, other := range gvks { // a DeleteOptions is of every group
			if other.GroupVersion().String() == "v1" {
				gvk = other
			}
		}
		fill := randfill.NewWithSeed(seed).NilChance(0.35).NumElements(0, 2).MaxDepth(9).Funcs(fillers()...)
		var lines bytes.Buffer
		filled := 0
		for try := 0; filled <= filledMost && try < 200; try++ {
			object := reflect.New(reflect.TypeOf(empty).Elem()).Interface().(runtime.Object)
			if try > 0 {
				fill.Fill(object)
			}
			object.GetObjectKind().SetGroupVersionKind(gvk)
			object, encoded := through(serializer, object)
			if len(encoded) > bytesMost {
				continue
			}
			filled++
			line := must(json.Marshal(map[string]any{"json": object, "protobuf": encoded}))
			lines.Write(append(line, '\n'))
		}
		name := strings.ToLower(fmt.Sprintf("%s_%s_%s.jsonl", gvk.Group, gvk.Version, gvk.Kind))
		name = strings.TrimPrefix(name, "_")
		if err := os.WriteFile(filepath.Join(os.Args[1], name), lines.Bytes(), 0o644); err != nil {
			panic(err)
		}
		fmt.Println(name, filled, lines.Len())
	}
}
