//! Links the object that `accesses.c` was compiled to, with hooks.

fn main() {
    println!("cargo:rerun-if-env-changed=DAGSAN_TEST_OBJECT");
    let object = std::env::var("DAGSAN_TEST_OBJECT").expect("DAGSAN_TEST_OBJECT names the object of accesses.c");
    println!("cargo:rerun-if-changed={object}");
    println!("cargo:rustc-link-arg-bins={object}");
}
