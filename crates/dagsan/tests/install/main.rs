//! DagSan as a newcomer has it: installed from the packages that a registry would have, into an empty home, without a checkout and without the network.

mod home;
mod packages;
mod walk;

/// One test, for one home.
#[test]
fn an_installed_command_works_without_a_checkout_and_without_the_network() {
    let home = home::Home::install();
    walk::check(&home);
}
