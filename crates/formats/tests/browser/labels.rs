//! How names are shortened to fit into their boxes.

use serde_json::json;

use super::samples::{self, Numbers};
use super::shown::{show, small};

#[test]
fn names_lose_arguments_first_and_then_segments() {
    let Some(mut shown) = show(&small()) else { return };
    for (name, forms) in [
        (
            "std::vector<int, std::allocator<int> >::push_back(int&&)",
            ["std::vector::push_back", "vector::push_back", "push_back"].as_slice(),
        ),
        (
            "llvm::FPPassManager::runOnModule(llvm::Module&) [clone .llvm.123] [clone .warm]",
            &["llvm::FPPassManager::runOnModule", "FPPassManager::runOnModule", "runOnModule"],
        ),
        (
            "void llvm::function_ref<void (unsigned long)>::callback_fn<a::b(c&)::{lambda(d*)#1}>(long, unsigned long)",
            &["llvm::function_ref::callback_fn", "function_ref::callback_fn", "callback_fn"],
        ),
        ("finish_task_switch.isra.0", &["finish_task_switch"]),
        ("std::function<void ()>::operator()() const", &["std::function::operator()", "function::operator()"]),
        ("foo::operator<(a<b> const&, c)", &["foo::operator<", "operator<"]),
        ("bool a::operator><b>(a<b> const&)", &["a::operator>", "operator>"]),
        ("x<&a::operator-> >::y(int)", &["x::y", "y"]),
        ("operator delete(void*, unsigned long)", &["operator delete"]),
        ("a::B::operator bool() const", &["a::B::operator bool", "B::operator bool", "operator bool"]),
        (
            "v8::(anonymous namespace)::Invoke(v8::internal::Isolate*)",
            &["v8::(anonymous namespace)::Invoke", "(anonymous namespace)::Invoke", "Invoke"],
        ),
        ("a::f(int)::$_0::operator()(int) const", &["a::f::$_0::operator()", "f::$_0::operator()"]),
        (
            "a::f()::{lambda(int, b::c)#1}::operator()(int, b::c) const",
            &["a::f::{lambda#1}::operator()", "f::{lambda#1}::operator()"],
        ),
        (
            "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once",
            &[
                "<alloc::boxed::Box as core::ops::function::FnOnce>::call_once",
                "<Box as FnOnce>::call_once",
                "alloc::boxed::Box::call_once",
                "boxed::Box::call_once",
                "Box::call_once",
                "call_once",
            ],
        ),
        (
            "<&mut [a::T; 4] as core::fmt::Debug>::fmt",
            &["<[a::T; 4] as core::fmt::Debug>::fmt", "<[a::T; 4] as Debug>::fmt", "[a::T; 4]::fmt", "fmt"],
        ),
        (
            "<<a::B>::f<u8>::{closure#1} as c::D<()>>::call_once::{shim:vtable#0}",
            &[
                "<a::B::f::{closure#1} as c::D>::call_once",
                "<f::{closure#1} as D>::call_once",
                "a::B::f::{closure#1}::call_once",
                "B::f::{closure#1}::call_once",
                "f::{closure#1}::call_once",
                "call_once",
            ],
        ),
        (
            "std::sys::backtrace::run::<f, ()>",
            &["std::sys::backtrace::run", "sys::backtrace::run", "backtrace::run", "run"],
        ),
        ("a::<impl b::C for d::E<F>>::g", &["a::d::E::g", "d::E::g", "E::g", "g"]),
        ("search::http::handle_query::{{closure}}", &["http::handle_query::{{closure}}", "handle_query::{{closure}}"]),
        ("<fn(a::B) -> c::D<E> as f::G>::h", &["<fn(a::B) -> c::D<E> as G>::h", "fn(a::B) -> c::D<E>::h", "h"]),
        ("runtime.(*mcache).refill", &["(*mcache).refill", "refill"]),
        ("net/http.(*T[...]).Go.func1", &["http.(*T[...]).Go.func1", "(*T[...]).Go.func1", "Go.func1"]),
        (
            "void com.shop.Cart$Item.<init>(int)",
            &["com.shop.Cart$Item.<init>", "shop.Cart$Item.<init>", "Cart$Item.<init>"],
        ),
        (
            "LazyCompile:*handler /srv/app.js:10:3",
            &["LazyCompile:*handler app.js:10:3", "LazyCompile:*handler", "*handler"],
        ),
        ("py::Foo.bar:/srv/main.py", &["py::Foo.bar:main.py", "py::Foo.bar", "Foo.bar", "bar"]),
        ("[/usr/lib/libfoo.so.3+0x1234]", &["[libfoo.so.3+0x1234]"]),
        ("[stopped: no unwind info]", &[]),
        ("memcpy@@GLIBC_2.14", &[]),
        ("_GLOBAL__sub_I_locale.cc", &[]),
        ("two words (3)", &[]),
        ("unbalanced<(", &[]),
    ] {
        let shown_forms = shown.browser.evaluate(&format!("shortForms({name:?})"));
        assert_eq!(shown_forms, json!([&[name], forms].concat()));
    }
    shown.browser.assert_quiet();
}

#[test]
fn a_box_shows_the_longest_form_that_fits() {
    let name = "<alloc::vec::Vec<u8> as core::ops::drop::Drop>::drop";
    let forms = [
        name,
        "<alloc::vec::Vec as core::ops::drop::Drop>::drop",
        "<Vec as Drop>::drop",
        "alloc::vec::Vec::drop",
        "vec::Vec::drop",
        "Vec::drop",
        "drop",
    ];
    let line = " (sample.c:7)";
    let mut builder = profile::Builder::default();
    let frame = samples::frame(&mut builder, name, profile::Kind::Native, false, 7);
    let process = builder.process(1, "p");
    let thread = builder.thread(process, 1, "p");
    let stack = builder.stack([frame]);
    builder.add(thread, stack, 1);
    let Some(mut shown) = show(&builder.finish()) else { return };
    for lines in [false, true] {
        shown.browser.evaluate(&format!("app.state.lines = {lines}"));
        let fitted = shown.browser.evaluate(
            "(() => {
                const box = app.graph.rows[1].boxes[0];
                return Array.from({ length: 500 }, (_, room) => app.graph.fit(box, room));
            })()",
        );
        let suffix = if lines { line } else { "" };
        for (room, text) in fitted.as_array().unwrap().iter().enumerate() {
            let mut width = |text: &str| {
                let measure = format!("app.graph.context.font = FONT, app.graph.context.measureText({text:?}).width");
                shown.browser.evaluate(&measure).as_f64().unwrap()
            };
            let text = text.as_str().unwrap();
            // where more than half would stay empty, there is the beginning of another segment
            let text = text.split_once("…::").map_or(text, |(_, last)| last);
            let all: Vec<String> =
                forms.iter().map(|form| format!("{form}{suffix}")).chain(forms.map(str::to_owned)).collect();
            // kerning makes a text a little narrower than the sum of its characters
            if let Some(at) = all.iter().position(|form| form == text) {
                assert!(width(text) <= room as f64, "{room}: {text}");
                assert!(at == 0 || width(&all[at - 1]) > room as f64 - 4.0, "{room}: {text}");
            } else {
                assert!(text.is_empty() || (text.ends_with('…') && "drop".starts_with(text.trim_end_matches('…'))));
                assert!(width("drop") > room as f64 - 4.0, "{room}: {text}");
            }
        }
    }
    shown.browser.assert_quiet();
}

#[test]
fn the_table_has_room_for_what_tells_functions_apart() {
    let long = "<borrow_checker::type_check::TypeChecker as mir::visit::Visitor<a::B>>::visit_body";
    let Some(mut shown) = show(&samples::plain_profile(&[(&["main", long], 1)])) else { return };
    shown.browser.press("t");
    let rows = shown.browser.evaluate(
        "[...document.querySelectorAll('#rows tr')].map(row => {
            const cell = row.lastElementChild;
            const name = cell.querySelector('b');
            const inside = name.getBoundingClientRect().right <= cell.getBoundingClientRect().right;
            return [name.textContent, inside, cell.title];
        })",
    );
    let module = "/usr/lib/libsample.so.1";
    assert_eq!(
        rows,
        json!([
            ["<TypeChecker as Visitor>::visit_body", true, format!("{long}\n{module}")],
            ["main", true, format!("main\n{module}")]
        ])
    );
    shown.browser.assert_quiet();
}

#[test]
fn groups_lose_their_ids_only() {
    let mut builder = profile::Builder::default();
    let process = builder.process(4_711, "kworker/0:1-events");
    let thread = builder.thread(process, 4_711, "kworker/0:1-events");
    builder.add(thread, None, 1);
    let Some(mut shown) = show(&builder.finish()) else { return };
    shown.choose("grouping", "process");
    let mut fit = |room: &str| shown.browser.evaluate(&format!("app.graph.fit(app.graph.rows[1].boxes[0], {room})"));
    assert_eq!(fit("1e3"), "kworker/0:1-events (4711)");
    assert_eq!(fit("app.graph.measure('kworker/0:1-events') + 1"), "kworker/0:1-events");
    assert_eq!(fit("app.graph.measure('kworker/…')"), "kworker/…");
    assert_eq!(fit("10"), "");
    shown.browser.assert_quiet();
}

#[test]
fn much_room_is_used_for_the_beginning_of_the_segment_before() {
    let name = "llvm::legacy::PassManagerImpl::run(llvm::Module&)";
    let Some(mut shown) = show(&samples::plain_profile(&[(&[name], 1)])) else { return };
    let mut fit = |room: &str| shown.browser.evaluate(&format!("app.graph.fit(app.graph.rows[1].boxes[0], {room})"));
    assert_eq!(fit("app.graph.measure('PassManagerImpl::run')"), "PassManagerImpl::run");
    assert_eq!(fit("app.graph.measure('PassManagerImpl::run') - 1"), "PassManagerI…::run");
    assert_eq!(fit("app.graph.measure('PassM…::run')"), "PassM…::run");
    assert_eq!(fit("app.graph.measure('Pa…::run')"), "run");
    assert_eq!(fit("app.graph.measure('run')"), "run");
    shown.browser.assert_quiet();
}

/// Whatever the brackets, every form says something and none is longer than the name.
#[test]
fn every_name_has_its_forms() {
    let parts = [
        "a", "operator", "<", ">", "(", ")", "[", "]", "{", "}", "::", ".", "/", " ", " as ", " for ", "impl ", "&",
        "-", " const", ":", "#1", "$_0", "1", "~", " + ", "py:", "dyn ",
    ];
    let mut numbers = Numbers(11);
    let names: Vec<String> = (0..4_000)
        .map(|_| (0..numbers.below(14)).map(|_| parts[numbers.below(parts.len() as u64) as usize]).collect())
        .chain([">".repeat(2_000), "<".repeat(1_000) + &">".repeat(1_000), "a::".repeat(600), "(a".repeat(900)])
        .filter(|name: &String| !name.is_empty())
        .collect();
    let Some(mut shown) = show(&small()) else { return };
    let wrong = shown.browser.evaluate(&format!(
        "{}.filter(name => {{
            const forms = shortForms(name);
            return forms[0] !== name || forms.length > 40 || forms.some(form => !form || form.length > name.length);
        }})",
        json!(names)
    ));
    assert_eq!(wrong, json!([]));
    shown.browser.assert_quiet();
}
