//! One counter: all views of what `record` made of real programs say the same of a function. The corpus has the same test.

use end_to_end::counted::Counted;
use end_to_end::programs;
use end_to_end::record::{Record, Recorded};

/// Compares all views of a recording that `record` made as a user would.
fn compare(program: &str, record: impl FnOnce(Record) -> Recorded) {
    let recorded = record(Record::new(&[]));
    let samples = recorded.report["samples"]["samples"].as_u64().expect("a number");
    assert!(samples >= 100, "{program}: only {samples} samples were recorded");
    Counted::read(&recorded.data(), program).expect_equal(&recorded.report, true);
}

#[test]
fn all_views_of_terser_count_the_same() {
    compare("terser", |record| record.program(&programs::terser()));
}

#[test]
fn all_views_of_tsc_and_what_it_compiled_count_the_same() {
    compare("tsc", |record| {
        let program = programs::tsc(record.folder());
        record.program(&program)
    });
}

#[test]
fn all_views_of_h2_count_the_same() {
    compare("H2", |record| {
        let program = programs::h2(record.folder());
        record.program(&program)
    });
}

#[test]
fn all_views_of_lucene_count_the_same() {
    compare("Lucene", |record| {
        let program = programs::lucene(record.folder());
        record.program(&program)
    });
}

#[test]
fn all_views_of_pylint_count_the_same() {
    compare("pylint", |record| {
        record.env("PYTHONPATH", programs::pylint_path()).program(&programs::pylint())
    });
}

#[test]
fn all_views_of_twig_count_the_same() {
    compare("Twig", |record| record.program(&programs::twig()));
}

#[test]
fn all_views_of_elixir_s_formatter_count_the_same() {
    compare("Elixir", |record| record.program(&programs::formatter()));
}
