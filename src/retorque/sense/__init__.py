"""Reading the arrow backwards: from what motors report to the wrench that the world exerts."""
