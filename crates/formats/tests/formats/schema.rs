//! A checker for the part of JSON Schema (draft 7) that speedscope's schema uses. It refuses schemas that use more.

use serde_json::Value;

/// The first place where `value` does not follow `schema`, a part of the document `root`.
pub fn check(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    for (keyword, argument) in schema.as_object().expect("a schema is an object") {
        keyword_holds(root, schema, (keyword, argument), value)?;
    }
    Ok(())
}

fn keyword_holds(root: &Value, schema: &Value, keyword: (&str, &Value), value: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {value:.100} against {schema:.100}"));
    match keyword {
        ("$ref", target) => {
            let path = target.as_str().and_then(|target| target.strip_prefix('#')).expect("a local reference");
            check(root, root.pointer(path).expect("a reference to something"), value)
        }
        ("type", kind) if !is_of_type(value, kind.as_str().expect("one type")) => wrong("another type"),
        ("const", only) if value != only => wrong("another constant"),
        ("enum", several) if !several.as_array().expect("a list").contains(value) => wrong("not in the list"),
        ("anyOf", several) => {
            let results: Vec<_> =
                several.as_array().expect("a list").iter().map(|one| check(root, one, value)).collect();
            if results.iter().any(Result::is_ok) { Ok(()) } else { wrong(&format!("none of {results:?}")) }
        }
        ("items", each) => value.as_array().into_iter().flatten().try_for_each(|item| check(root, each, item)),
        ("required", names) => {
            let names = names.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name"));
            match names.filter(|_| value.is_object()).find(|name| value.get(name).is_none()) {
                Some(name) => wrong(&format!("lacks {name}")),
                None => Ok(()),
            }
        }
        ("properties", properties) => properties
            .as_object()
            .expect("an object")
            .iter()
            .try_for_each(|(name, schema)| value.get(name).map_or(Ok(()), |value| check(root, schema, value))),
        ("type" | "const" | "enum" | "title" | "definitions" | "$schema", _) => Ok(()),
        (unknown, _) => panic!("the schema uses {unknown}"),
    }
}

fn is_of_type(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        other => panic!("the schema uses the type {other}"),
    }
}
